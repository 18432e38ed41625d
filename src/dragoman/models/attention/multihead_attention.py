"""Multi-head attention: several small attentions side by side (section 3.2.2 of the paper)."""

from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from dragoman.data.packed_mask import PackedMask
from dragoman.kernels.training.linear import linear
from dragoman.kernels.training.packed_attention import Heads, packed_attention
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.observer import Observer
from dragoman.models.attention.scaled_dot_product_attention import (
    attention_weights,
    fused_attention,
    score_scale,
)
from dragoman.shapes import Float, Int


class KeysAndValues(NamedTuple):
    """Projected keys and values of a sequence, split into heads."""

    keys: Float[Tensor, "batch heads keys key_dim"]
    values: Float[Tensor, "batch heads keys value_dim"]

    def rows(self, chosen: Int[Tensor, "rows"], length: int) -> "KeysAndValues":
        """Copy some rows, leaving what is beyond the filled length as it comes."""
        copies = []
        for each in self:
            copy = each.new_empty(len(chosen), *each.shape[1:])
            copy[:, :, :length] = each[chosen, :, :length]
            copies.append(copy)
        return KeysAndValues(*copies)


@runtime_checkable
class ScoreBias(Protocol):
    """Interface of position biases that are added to the scores."""

    def __call__(
        self, query: Float[Tensor, "batch heads queries key_dim"], num_keys: int
    ) -> Float[Tensor, "#batch heads queries keys"]:
        """Return the bias; the last query is at the position of the last key."""
        ...


@runtime_checkable
class Rotation(Protocol):
    """Interface of rotary positions."""

    def __call__(
        self, vectors: Float[Tensor, "batch heads length key_dim"], first: int
    ) -> Float[Tensor, "batch heads length key_dim"]:
        """Rotate queries or keys; the first is at the given position."""
        ...

    def packed(
        self,
        columns: Float[Tensor, "tokens columns"],
        mask: PackedMask,
        num_vectors: int,
    ) -> Float[Tensor, "tokens columns"]:
        """Attend within packed sentences, to themselves or to others."""
        ...


class MultiheadAttention(nn.Module):
    r"""Attend with several heads, each with its own projections.

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
    scaled : bool
        Whether scores are divided by √d_k.
    causal : bool
        Whether a sequence that attends to itself may look only back.
    score_bias : ScoreBias | None
        Positions that act on the scores.
    rotation : Rotation | None
        Positions that act on queries and keys.
    dropout : float
        Share of the weights that is dropped in training, unless an observer looks.

    Notes
    -----
    :math:`\mathrm{Concat}(\mathrm{head}_1,\ldots,\mathrm{head}_h)W^O` with
    :math:`\mathrm{head}_i=\mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)`. The h matrices of each kind
    are stored side by side as one. W^O is linear: nothing follows the concatenation (one of the
    notes adds a non-linearity, which the paper does not have).
    """

    def __init__(
        self,
        model_dim: int,
        num_heads: int,
        *,
        key_dim: int,
        value_dim: int,
        bias: bool,
        scaled: bool = True,
        causal: bool = False,
        score_bias: ScoreBias | None = None,
        rotation: Rotation | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.scaled = scaled
        self.causal = causal
        self.score_bias = score_bias
        self.rotation = rotation
        self.dropout = dropout
        self.query = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.key = nn.Linear(model_dim, num_heads * key_dim, bias=bias)
        self.value = nn.Linear(model_dim, num_heads * value_dim, bias=bias)
        self.output = nn.Linear(num_heads * value_dim, model_dim, bias=bias)
        self.observer: Observer | None = None

    def keys_and_values(
        self, memory: Float[Tensor, "batch keys model_dim"], first: int = 0
    ) -> KeysAndValues:
        """Project memory to keys and values."""
        keys = self._heads(self.key(memory))
        if self.rotation is not None:
            keys = self.rotation(keys, first)
        return KeysAndValues(keys, self._heads(self.value(memory)))

    def forward(
        self,
        queries: Float[Tensor, "batch queries model_dim"],
        memory: KeysAndValues,
        mask: Mask,
        first: int = 0,
    ) -> Float[Tensor, "batch queries model_dim"]:
        """Attend to the memory in every head, and join the heads."""
        query = self._heads(self.query(queries))
        if self.rotation is not None:
            query = self.rotation(query, first)
        bias = self.score_bias(query, memory.keys.size(2)) if self.score_bias else None
        if self.observer is None:
            found = fused_attention(
                query,
                memory.keys,
                memory.values,
                mask,
                scaled=self.scaled,
                bias=bias,
                dropout=self.dropout if self.training else 0.0,
            )
        else:
            weights = attention_weights(query, memory.keys, mask, scaled=self.scaled, bias=bias)
            found = self.observer(weights) @ memory.values
        return self.output(found.transpose(1, 2).flatten(-2))

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Compute self-attention of whole sentences.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The sequence.
        lengths : Int[Tensor, "batch"] | None
            Where the padding begins. A causal sequence needs none: its padding stands at the end,
            and looking no later also means not looking at padding.
        """
        mask = Mask(key_lengths=lengths, causal=self.causal)
        return self(states, self.keys_and_values(states), mask)

    def packed(
        self,
        states: Float[Tensor, "queries model_dim"],
        memory: Float[Tensor, "keys model_dim"] | None,
        mask: PackedMask,
    ) -> Float[Tensor, "queries model_dim"]:
        """Let packed sentences attend, to themselves or to others.

        Notes
        -----
        Projections of the same states are one product. Positions that act on scores cannot be
        packed; rotation can, as it knows from the mask where each position stands.
        """
        key_dim = self.key.out_features // self.num_heads
        heads = Heads(self.num_heads, key_dim, self.value.out_features // self.num_heads)
        if memory is None:
            states = linear(states, self.query, self.key, self.value)
            if self.rotation is not None:
                states = self.rotation.packed(states, mask, 2 * self.num_heads)
        else:
            states = linear(states, self.query)
            memory = linear(memory, self.key, self.value)
        scale = score_scale(key_dim, self.scaled)
        dropout = self.dropout if self.training else 0.0
        found = packed_attention(states, memory, heads, mask, scale, dropout)
        return linear(found, self.output)

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> KeysAndValues:
        """Allocate a cache of keys and values."""
        dims = (self.key.out_features, self.value.out_features)
        shape = (num_rows, self.num_heads, capacity)
        return KeysAndValues(*(like.new_zeros(*shape, dim // self.num_heads) for dim in dims))

    def step(
        self, states: Float[Tensor, "rows 1 model_dim"], cache: KeysAndValues, length: int
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], KeysAndValues]:
        """Attend with the newest token to those before it and to itself."""
        new = self.keys_and_values(states, length)
        cache.keys[:, :, length : length + 1] = new.keys
        cache.values[:, :, length : length + 1] = new.values
        filled = KeysAndValues(cache.keys[:, :, : length + 1], cache.values[:, :, : length + 1])
        return self(states, filled, Mask(), length), cache

    def _heads(self, joined: Tensor) -> Tensor:
        """Split the last dimension into heads and move them before the positions."""
        return joined.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
