"""Quantise matrices to int8 with a scale for each row, as NumPy arrays."""

from typing import NamedTuple

import numpy as np

from dragoman.shapes import Float, Float32, Int8

SCALES = ".scales"
"""What the name of a matrix's scales ends with in a file of weights."""
LARGEST_WEIGHT = 127
SMALLEST = 1e-20
ROWS_AT_ONCE = 2048  # temporary copies of a whole output matrix would take 200 MB


class Rounded(NamedTuple):
    """A matrix in int8 with a scale for each row."""

    numbers: Int8[np.ndarray, "rows columns"]
    scales: Float32[np.ndarray, "rows"]


def round_matrix(matrix: Float[np.ndarray, "rows columns"]) -> Rounded:
    """Quantise a matrix to int8, with a scale for each row."""
    numbers = np.empty(matrix.shape, np.int8)
    scales = np.empty(len(matrix), np.float32)
    for start in range(0, len(matrix), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        part = matrix[rows].astype(np.float32)
        largest = np.abs(part).max(1, initial=SMALLEST)
        scales[rows] = largest / np.float32(LARGEST_WEIGHT)
        part /= scales[rows, None]
        numbers[rows] = np.rint(part, out=part)
    return Rounded(numbers, scales)
