"""Matrices rounded to eight bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import eight_bits
from dragoman.eight_bits import LARGEST_WEIGHT, round_matrix


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 99), st.floats(1e-6, 1e6))
def test_no_entry_is_further_off_than_half_a_step(rows, columns, seed, size):
    matrix = (size * np.random.default_rng(seed).normal(size=(rows, columns))).astype(np.float32)
    numbers, scales = round_matrix(matrix)
    error = np.abs(numbers * scales[:, None].astype(np.float64) - matrix)
    assert (error <= 0.5001 * scales[:, None]).all()
    assert (np.abs(numbers).max(1) == LARGEST_WEIGHT).all()


def test_nothing_stays_nothing():
    numbers, scales = round_matrix(np.zeros((2, 3), np.float32))
    assert not numbers.any()
    assert (scales > 0).all()


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_parts_are_those_of_the_whole(monkeypatch, at_once):
    matrix = np.random.default_rng(2).normal(size=(7, 4)).astype(np.float32)
    expected = round_matrix(matrix)
    monkeypatch.setattr(eight_bits, "ROWS_AT_ONCE", at_once)
    for one, other in zip(round_matrix(matrix), expected, strict=True):
        assert np.array_equal(one, other)
