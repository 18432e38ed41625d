"""Lay out weight matrices in panels for fast products, in int8 or float32.

Nothing here is compiled, and nothing needs PyTorch.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from dragoman.eight_bits import Rounded
from dragoman.kernels.processor import INSTRUCTION_SETS, choose_instructions
from dragoman.shapes import Float

ENTRIES, LANES, COLUMNS = 4, 16, 64
"""Entries that one instruction multiplies and sums, numbers that compiled loops compute together
(on processors with narrower registers, in several), and outputs of a panel."""
LARGEST = 127
"""What the largest entry of a vector becomes; that of a matrix has as many steps."""


def find_zero() -> int:
    """Return the byte that stands for 0 in quantised vectors."""
    return INSTRUCTION_SETS[choose_instructions()].zero


class Matrix(NamedTuple):
    """A weight matrix laid out for tiles.

    `panels` has 64 outputs each, the last padded: in int8 [panels, inputs / 4, 256], four inputs at
    a time, output by output, an even number of times; in float32 [panels, inputs, 64]. `outputs`,
    [panels, 3, 64], has of each output the bits of an integer to subtract from sums, since 0 is not
    stored as 0; the scale; and the bias, −∞ for padding. In float32 only the bias counts. `width`
    is the number of inputs.
    """

    panels: np.ndarray
    outputs: np.ndarray
    width: int


def lay_out(weight: Rounded, bias: Float[np.ndarray, "outputs"] | None) -> Matrix:
    """Lay out an int8 matrix in panels."""
    numbers, scales = weight
    size, width = numbers.shape
    more = (0, -size % COLUMNS)
    numbers = np.pad(numbers, (more, (0, -width % (2 * ENTRIES))))  # some sets take them in pairs
    panels = numbers.reshape(-1, COLUMNS, numbers.shape[1] // ENTRIES, ENTRIES).swapaxes(1, 2)
    shifts = numbers.sum(1, dtype=np.int32) * np.int32(find_zero())
    added = np.zeros(size, np.float32) if bias is None else bias.astype(np.float32)
    rows = (
        shifts.view(np.float32),
        np.pad(scales.astype(np.float32) / LARGEST, more),
        np.pad(added, more, constant_values=-np.inf),
    )
    outputs = np.stack([each.reshape(-1, COLUMNS) for each in rows], 1)
    # Copied once: the output matrix is the largest array in memory.
    return Matrix(panels.reshape(*panels.shape[:2], COLUMNS * ENTRIES), outputs, width)


def lay_out_floats(
    weight: Float[np.ndarray, "outputs inputs"], bias: Float[np.ndarray, "outputs"] | None
) -> Matrix:
    """Lay out a float32 matrix in panels."""
    size, width = weight.shape
    count = -(-size // COLUMNS)
    panels = np.zeros((count, width, COLUMNS), np.float32)
    for panel in range(count):
        part = weight[panel * COLUMNS : (panel + 1) * COLUMNS]
        panels[panel, :, : len(part)] = part.T
    outputs = np.zeros((count, 3, COLUMNS), np.float32)
    outputs[:, 1] = 1
    outputs[-1, 2] = -np.inf
    added = np.zeros(size, np.float32) if bias is None else bias
    for panel in range(count):
        part = added[panel * COLUMNS : (panel + 1) * COLUMNS]
        outputs[panel, 2, : len(part)] = part
    return Matrix(panels, outputs, width)


def stack(matrices: Iterable[Matrix], count: int) -> Matrix:
    """Stack the same matrix of all layers."""
    every: Matrix | None = None
    for index, each in enumerate(matrices):
        if every is None:
            panels, outputs = (np.empty((count, *part.shape), part.dtype) for part in each[:2])
            every = Matrix(panels, outputs, each.width)
        every.panels[index], every.outputs[index] = each[:2]
    assert every is not None
    return every
