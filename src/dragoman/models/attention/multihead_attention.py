"""Multi-head attention: several small attentions side by side (section 3.2.2 of the paper)."""

from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.models.attention.mask import Mask
from dragoman.models.attention.observer import Observer
from dragoman.models.attention.scaled_dot_product_attention import (
    attention_weights,
    fused_attention,
)


class KeysAndValues(NamedTuple):
    """What a sequence offers to those who attend to it, split into heads."""

    keys: Float[Tensor, "batch heads keys key_dim"]
    values: Float[Tensor, "batch heads keys value_dim"]


class MultiheadAttention(nn.Module):
    r"""Attend with several heads, each in its own projection of the model's space.

    Parameters
    ----------
    model_dim : int
        Width of what comes in and goes out (d_model).
    num_heads : int
        Heads (h).
    key_dim : int
        Width of one head's queries and keys (d_k).
    value_dim : int
        Width of one head's values (d_v).
    bias : bool
        Whether the four projections have biases; the paper's have none.

    Notes
    -----
    :math:`\mathrm{Concat}(\mathrm{head}_1,\ldots,\mathrm{head}_h)W^O` with
    :math:`\mathrm{head}_i=\mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)`. The h matrices of each kind
    are stored side by side as one. W^O is linear: nothing follows the concatenation (one of the
    notes adds a non-linearity, which the paper does not have).
    """

    def __init__(
        self, model_dim: int, num_heads: int, *, key_dim: int, value_dim: int, bias: bool
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.query = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.key = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.value = nn.Linear(model_dim, num_heads * value_dim, bias=bias)
        self.output = nn.Linear(num_heads * value_dim, model_dim, bias=bias)
        self.observer: Observer | None = None

    def keys_and_values(self, memory: Float[Tensor, "batch keys model_dim"]) -> KeysAndValues:
        """Project what is to be attended to.

        Parameters
        ----------
        memory : Float[Tensor, "batch keys model_dim"]
            The sequence that offers itself.

        Returns
        -------
        KeysAndValues
            Its keys and values in every head.
        """
        return KeysAndValues(self._heads(self.key(memory)), self._heads(self.value(memory)))

    def forward(
        self,
        queries: Float[Tensor, "batch queries model_dim"],
        memory: KeysAndValues,
        mask: Mask,
    ) -> Float[Tensor, "batch queries model_dim"]:
        """Let each position look at the memory in every head, and join what the heads found.

        Parameters
        ----------
        queries : Float[Tensor, "batch queries model_dim"]
            The positions that look.
        memory : KeysAndValues
            What they look at, from `keys_and_values`.
        mask : Mask
            Who may look where.

        Returns
        -------
        Float[Tensor, "batch queries model_dim"]
            What each position found.
        """
        query = self._heads(self.query(queries))
        if self.observer is None:
            found = fused_attention(query, memory.keys, memory.values, mask)
        else:
            weights = self.observer(attention_weights(query, memory.keys, mask))
            found = weights @ memory.values
        return self.output(found.transpose(1, 2).flatten(-2))

    def _heads(self, joined: Tensor) -> Tensor:
        """Split the last dimension into heads and move them before the positions."""
        return joined.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


def self_attend(
    attention: MultiheadAttention, states: Float[Tensor, "batch length model_dim"], mask: Mask
) -> Float[Tensor, "batch length model_dim"]:
    """Let a sequence attend to itself.

    Parameters
    ----------
    attention : MultiheadAttention
        The layer.
    states : Float[Tensor, "batch length model_dim"]
        The sequence.
    mask : Mask
        Who may look where.

    Returns
    -------
    Float[Tensor, "batch length model_dim"]
        What each position found.
    """
    return attention(states, attention.keys_and_values(states), mask)


def write_cache(cache: KeysAndValues, place: int, new: KeysAndValues) -> KeysAndValues:
    """Add one position to a cache in place and return the part that is filled.

    Parameters
    ----------
    cache : KeysAndValues
        Room for the whole sequence.
    place : int
        The position to fill.
    new : KeysAndValues
        One key and value.

    Returns
    -------
    KeysAndValues
        Views of all positions up to this one.
    """
    cache.keys[:, :, place : place + 1] = new.keys
    cache.values[:, :, place : place + 1] = new.values
    return KeysAndValues(cache.keys[:, :, : place + 1], cache.values[:, :, : place + 1])
