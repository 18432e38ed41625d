"""Matrices in eight bits, and how a file of weights holds them."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor

from dragoman.errors import FolderError

SCALES = ".scales"
LARGEST_WEIGHT = 127
SMALLEST = 1e-20
LARGEST_ACTIVATION = 63
ROWS_AT_ONCE = 2048  # of a whole vocabulary's matrix, the copies between would take 200 MB


class Quantised(NamedTuple):
    """A matrix in eight bits: whole numbers, and what each row is multiplied by."""

    numbers: Int8[Tensor, "rows columns"]
    scales: Float[Tensor, "rows"]

    def restored(self) -> Float[Tensor, "rows columns"]:
        """Multiply out.

        Returns
        -------
        Float[Tensor, "rows columns"]
            The matrix, but for what rounding took.
        """
        return self.numbers * self.scales[:, None]

    def rows(self, places: Int[Tensor, "chosen"]) -> "Quantised":
        """Take some rows.

        Parameters
        ----------
        places : Int[Tensor, "chosen"]
            Which.

        Returns
        -------
        Quantised
            The smaller matrix.
        """
        return Quantised(self.numbers[places], self.scales[places])


def quantise_matrix(matrix: Float[Tensor, "rows columns"]) -> Quantised:
    """Round a matrix to eight bits, each row by a scale of its own.

    Parameters
    ----------
    matrix : Float[Tensor, "rows columns"]
        The weights, one row an output.

    Returns
    -------
    Quantised
        The row's largest entry becomes ±127.
    """
    parts = [_round(part.float()) for part in matrix.detach().split(ROWS_AT_ONCE)]
    return Quantised(*(torch.cat(each) for each in zip(*parts, strict=True)))


def _round(matrix: Float[Tensor, "rows columns"]) -> Quantised:
    scales = matrix.abs().amax(1).clamp_min(SMALLEST) / LARGEST_WEIGHT
    return Quantised((matrix / scales[:, None]).round_().to(torch.int8), scales)


def pair(place: Path, name: str, numbers: Tensor, scales: Tensor) -> Quantised:
    """Put a matrix and its scales together, checking that they belong together.

    Parameters
    ----------
    place : Path
        Where they come from.
    name : str
        What the matrix is called.
    numbers : Tensor
        Its whole numbers.
    scales : Tensor
        What its rows are multiplied by.

    Returns
    -------
    Quantised
        Both.
    """
    is_right = numbers.dtype == torch.int8 and scales.is_floating_point()
    if not is_right or numbers.dim() != 2 or scales.shape != numbers.shape[:1]:
        raise FolderError(f"{place}: damaged ({name} and its scales do not fit); get it again")
    return Quantised(numbers, scales)


def restore(weights: Mapping[str, Tensor], place: Path) -> dict[str, Tensor]:
    """Multiply out what is in eight bits.

    Parameters
    ----------
    weights : Mapping[str, Tensor]
        By name; the scales of matrix “x” are “x.scales”.
    place : Path
        Where they come from.

    Returns
    -------
    dict[str, Tensor]
        All in float, without scales.
    """
    return {
        name: pair(place, name, each, weights[name + SCALES]).restored()
        if name + SCALES in weights
        else each
        for name, each in weights.items()
        if not name.endswith(SCALES)
    }
