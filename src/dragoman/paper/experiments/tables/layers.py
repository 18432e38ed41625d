"""One bare layer of each kind in table 1, without projections, as the table counts."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.models.attention.mask import Mask
from dragoman.models.attention.restricted_attention import RestrictedAttention
from dragoman.models.attention.scaled_dot_product_attention import scaled_dot_product_attention
from dragoman.models.recurrent.cells import RNNCell
from dragoman.models.recurrent.layer import RecurrentLayer, run_in_loop
from dragoman.shapes import Float

Layer = Callable[[Float[Tensor, "1 length width"]], Float[Tensor, "1 length width"]]


class LayerKind(NamedTuple):
    """A kind of layer: its name, a constructor by width, and one to count operations."""

    name: str
    make: Callable[[int], Layer]
    make_spelt_out: Callable[[int], Layer]


def list_layers(kernel_size: int, window: int) -> tuple[LayerKind, ...]:
    """List the kinds of layers in table 1.

    Returns
    -------
    tuple[LayerKind, ...]
        In the table's order. Layers are made on the current default device. The second form of
        each computes the same step by step, where the first may use one fused kernel.
    """

    def make_convolution(width: int) -> Layer:
        convolution = nn.Conv1d(width, width, kernel_size, padding=kernel_size // 2)
        return lambda words: convolution(words.transpose(1, 2)).transpose(1, 2)

    def make_restricted(width: int) -> Layer:
        return _make_restricted(width, window)

    return (
        LayerKind("self-attention", _make_attention, _make_attention),
        LayerKind("recurrent", _make_recurrence, _make_loop),
        LayerKind("convolutional", make_convolution, make_convolution),
        LayerKind("self-attention (restricted)", make_restricted, make_restricted),
    )


class Unchanged(nn.Module):
    """An identity in place of a projection.

    Parameters
    ----------
    width : int
        Of what passes.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.in_features = self.out_features = width

    def forward(self, words: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
        """Return the input."""
        return words


def _make_attention(width: int) -> Layer:  # noqa: ARG001
    """Make single-head attention (equation 1) with the words as queries, keys and values."""

    def attend(words: Tensor) -> Tensor:
        heads = words.unsqueeze(1)
        return scaled_dot_product_attention(heads, heads, heads, Mask()).values.squeeze(1)

    return attend


def _make_restricted(width: int, window: int) -> Layer:
    """Make attention within a window."""
    attention = RestrictedAttention(
        width, 1, key_dim=width, value_dim=width, bias=False, scaled=True, window=window,
        causal=False,
    )  # fmt: skip
    for name in ("query", "key", "value", "output"):
        setattr(attention, name, Unchanged(width))
    return lambda words: attention.attend(words, None)


def _make_recurrence(width: int) -> Layer:
    """Make a plain recurrent layer with a fused kernel."""
    layer = RecurrentLayer(RNNCell(width, width))
    return lambda words: layer(words)[0]


def _make_loop(width: int) -> Layer:
    """Make a plain recurrent layer as a loop over words."""
    cell = RNNCell(width, width)
    return lambda words: run_in_loop(cell, words, cell.start((len(words),), words), None)[0]


def make_pass(layer: Layer, words: Float[Tensor, "1 length width"]) -> Callable[[], None]:
    """Make the measured computation: forward and backward pass of a layer."""
    leaf = words.detach().requires_grad_()

    def there_and_back() -> None:
        (gradient,) = torch.autograd.grad(layer(leaf).sum(), leaf)
        del gradient

    return there_and_back
