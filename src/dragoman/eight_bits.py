"""Matrices in eight bits, and how a file of weights holds them."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Int8
from torch import Tensor

SCALES = ".scales"
LARGEST_WEIGHT = 127
SMALLEST = 1e-20


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
    matrix = matrix.detach().float()
    scales = matrix.abs().amax(1).clamp_min(SMALLEST) / LARGEST_WEIGHT
    return Quantised((matrix / scales[:, None]).round().to(torch.int8), scales)


def restore(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Multiply out what is in eight bits.

    Parameters
    ----------
    weights : Mapping[str, Tensor]
        By name; the scales of matrix “x” are “x.scales”.

    Returns
    -------
    dict[str, Tensor]
        All in float, without scales.
    """
    return {
        name: Quantised(each, weights[name + SCALES]).restored()
        if name + SCALES in weights
        else each
        for name, each in weights.items()
        if not name.endswith(SCALES)
    }
