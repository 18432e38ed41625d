"""Scores of a panel, weighed in registers, compared with NumPy's sums."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.token_scores import (
    LOWEST,
    accumulate_exponentials,
    find_above,
    find_lowest,
    find_normaliser,
)
from dragoman.kernels.cpu_search.weight_layout import COLUMNS


@compiled
def weigh_all(scores, is_normalised):
    tops = np.empty(len(scores), np.float32)
    highest, total = LOWEST, np.float32(0)
    for panel in range(len(scores)):
        address = scores.ctypes.data + 4 * COLUMNS * panel
        tops[panel], highest, total = accumulate_exponentials(
            address, is_normalised, highest, total
        )
    return tops, highest, total


@compiled
def list_above(scores, bound):
    found, bits = [], find_above(scores.ctypes.data, bound)
    while bits:
        found.append(find_lowest(bits))
        bits &= bits - np.uint64(1)
    return found


def make_scores(num_panels, spread=5.0):
    chance = np.random.default_rng(num_panels)
    return (spread * chance.normal(size=(num_panels, COLUMNS))).astype(np.float32)


@pytest.mark.parametrize("num_panels", [1, 9])
@pytest.mark.parametrize("spread", [0.01, 5, 60])
def test_exponentials_are_added_up(num_panels, spread):
    scores = make_scores(num_panels, spread)
    scores[0, 3:7] = -np.inf
    tops, highest, total = weigh_all(scores, True)
    assert tops.tolist() == scores.max(1).tolist()
    assert highest == scores.max()
    expected = np.exp(scores.astype(np.float64) - highest).sum()
    assert total == pytest.approx(expected, rel=1e-6)


def test_without_exponentials_only_the_highest_are_found():
    scores = make_scores(4)
    tops, highest, total = weigh_all(scores, False)
    assert tops.tolist() == scores.max(1).tolist()
    assert (highest, total) == (LOWEST, 0)


def test_parts_have_one_normaliser():
    scores = make_scores(12)
    parts = [weigh_all(part, True)[1:] for part in np.split(scores, 3)]
    highest, totals = np.array(parts, np.float32).T.copy()
    expected = np.log(np.exp(scores.astype(np.float64)).sum())
    assert find_normaliser(highest, totals) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("bound", [-np.inf, -3.0, 0.0, 8.0, np.inf])
def test_what_is_above_a_bound_is_found_in_order(bound):
    scores = make_scores(1)[0]
    scores[[5, 63]] = -np.inf
    scores[9] = np.float32(8.0)
    assert list_above(scores, np.float32(bound)) == np.flatnonzero(scores > bound).tolist()
