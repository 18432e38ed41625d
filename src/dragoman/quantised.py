"""Quantised matrices as PyTorch tensors, and in files of weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from dragoman.eight_bits import LARGEST_WEIGHT, SCALES, Rounded
from dragoman.errors import FolderError
from dragoman.shapes import Float, Int8

SLACK = 1e-3
"""By how much of a step a number may differ from a multiple, as floats are no exact fractions."""


class Quantised(NamedTuple):
    """A matrix in int8 with a scale for each row."""

    numbers: Int8[Tensor, "rows columns"]
    scales: Float[Tensor, "rows"]

    @staticmethod
    def of(matrix: Rounded) -> "Quantised":
        """View NumPy arrays as tensors."""
        return Quantised(*map(torch.from_numpy, matrix))

    def restored(self) -> Float[Tensor, "rows columns"]:
        """Dequantise to float."""
        return self.numbers * self.scales[:, None]


def pair(place: Path, name: str, numbers: Tensor, scales: Tensor) -> Quantised:
    """Combine a matrix and its scales, checking types and shapes."""
    is_right = numbers.dtype == torch.int8 and scales.is_floating_point()
    if not is_right or numbers.dim() != 2 or scales.shape != numbers.shape[:1]:
        raise FolderError(f"{place}: damaged ({name} and its scales do not fit); get it again")
    return Quantised(numbers, scales)


def restore(weights: Mapping[str, Tensor], place: Path) -> dict[str, Tensor]:
    """Dequantise all int8 matrices of a model."""
    return {
        name: pair(place, name, each, weights[name + SCALES]).restored()
        if name + SCALES in weights
        else each
        for name, each in weights.items()
        if not name.endswith(SCALES)
    }


def round_again(weights: Mapping[str, Tensor], steps: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Quantise matrices that were quantised before, without loss.

    Parameters
    ----------
    weights : Mapping[str, Tensor]
        All weights of a model.
    steps : Mapping[str, Tensor]
        Of every number the step of which it is a multiple; 0: it was not quantised.

    Returns
    -------
    dict[str, Tensor]
        The weights, with numbers and scales in place of each matrix whose rows have one step each.
    """
    found = dict(weights)
    for name, step in steps.items():
        if name not in weights or step.dim() != 2 or not step.any():
            continue
        scales = step.amax(1)
        scales[scales == 0] = 1  # rows of zeros that were added
        numbers = torch.round(weights[name] / scales[:, None])
        is_same = (numbers * scales[:, None] - weights[name]).abs() <= SLACK * scales[:, None]
        if is_same.all() and numbers.abs().amax() <= LARGEST_WEIGHT:
            found[name], found[name + SCALES] = numbers.to(torch.int8), scales
    return found
