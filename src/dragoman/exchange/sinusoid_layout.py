"""Convert between interleaved sinusoids (ours) and concatenated ones (Marian's).

Here sine and cosine alternate, as in the paper; in Marian all sines come first. Every tensor on the
residual stream has its channels moved accordingly, and nothing changes but the order in which sums
are added up.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from dragoman.eight_bits import SCALES
from dragoman.shapes import Int

READERS = ("query", "key", "value", "inner", "gate")
"""The linear maps that read the residual stream; the others write to it."""
CELLS = ("forget", "update")
"""Those that do both: a recurrent cell is as wide as the stream, and goes there as it is."""


def to_concatenated_sinusoids(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Reorder channels so that all sines come before all cosines."""
    return _move(weights, concatenated_order)


def to_interleaved_sinusoids(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Reorder channels so that sines and cosines alternate."""
    return _move(weights, lambda model_dim: concatenated_order(model_dim).argsort())


def concatenated_order(model_dim: int) -> Int[Tensor, "model_dim"]:
    """List the even channels, then the odd ones."""
    return torch.arange(model_dim).view(-1, 2).t().flatten()


def _move(weights: Mapping[str, Tensor], order: Callable[[int], Tensor]) -> dict[str, Tensor]:
    moved = {}
    for name, each in weights.items():
        moved[name] = each
        for axis in _residual_axes(name):
            moved[name] = moved[name].index_select(axis, order(each.size(axis)))
    return moved


def _residual_axes(name: str) -> tuple[int, ...]:
    """List the axes of a weight that lie on the residual stream."""
    if name.endswith(SCALES):  # of the rows
        return tuple(axis for axis in _residual_axes(name.removesuffix(SCALES)) if axis == 0)
    *_, part, kind = name.split(".")
    if kind == "words":
        return (1,)
    if name == "output.bias":
        return ()
    if part in READERS:
        return (1,) if kind == "weight" else ()
    if part in CELLS:
        return (0, 1) if kind == "weight" else (0,)
    return (0,)
