"""How matrices lie in memory, in eight bits or in float32, so that they are multiplied fastest.

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
    """Find the byte that stands for 0 in rounded vectors."""
    return INSTRUCTION_SETS[choose_instructions()].zero


class Matrix(NamedTuple):
    """A matrix laid out for tiles.

    `panels` has 64 outputs each, the last filled up. In eight bits they are [panels, inputs / 4,
    256], four inputs at a time, output by output; in float32 [panels, inputs, 64]. `outputs` has of
    each output [panels, 3, 64] the bits of a whole number that is subtracted from sums, because
    what stands for 0 is not 0; what they are then multiplied by; and what is added, −∞ where a
    panel is filled up. In float32 only the last counts. `width` is how many inputs there are.
    """

    panels: np.ndarray
    outputs: np.ndarray
    width: int


def lay_out(weight: Rounded, bias: Float[np.ndarray, "outputs"] | None) -> Matrix:
    """Bring a matrix into the order in which tiles read it."""
    numbers, scales = weight
    size, width = numbers.shape
    more = (0, -size % COLUMNS)
    numbers = np.pad(numbers, (more, (0, -width % ENTRIES)))
    panels = numbers.reshape(-1, COLUMNS, numbers.shape[1] // ENTRIES, ENTRIES).swapaxes(1, 2)
    shifts = numbers.sum(1, dtype=np.int32) * np.int32(find_zero())
    added = np.zeros(size, np.float32) if bias is None else bias.astype(np.float32)
    rows = (
        shifts.view(np.float32),
        np.pad(scales.astype(np.float32) / LARGEST, more),
        np.pad(added, more, constant_values=-np.inf),
    )
    outputs = np.stack([each.reshape(-1, COLUMNS) for each in rows], 1)
    # Copied once: a matrix of a vocabulary is the largest thing in memory.
    return Matrix(panels.reshape(*panels.shape[:2], COLUMNS * ENTRIES), outputs, width)


def lay_out_floats(
    weight: Float[np.ndarray, "outputs inputs"], bias: Float[np.ndarray, "outputs"] | None
) -> Matrix:
    """Bring a matrix in float32 into the order in which tiles read it."""
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
    """Put the same matrix of all layers behind one another."""
    every: Matrix | None = None
    for index, each in enumerate(matrices):
        if every is None:
            panels, outputs = (np.empty((count, *part.shape), part.dtype) for part in each[:2])
            every = Matrix(panels, outputs, each.width)
        every.panels[index], every.outputs[index] = each[:2]
    assert every is not None
    return every
