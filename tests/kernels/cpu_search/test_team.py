"""Products that several cores compute together are those of one core, bit by bit."""

import threading

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401
from tests.kernels.cpu_search.test_best_tokens import find
from tests.kernels.cpu_search.test_tiles import make_matrix, make_vectors, multiply

from dragoman.kernels.cpu_search.task import DONE, IS_OVER, IS_SLOW, LEFT, PART, make_team
from dragoman.kernels.cpu_search.team import (
    has_helpers,
    make_single_core_team,
    multiply_together,
    run_helper,
)
from dragoman.kernels.cpu_search.tiles import fill_tiles
from dragoman.kernels.cpu_search.weight_layout import lay_out, lay_out_floats

SIZE, WIDTH = 5000, 130


def make_both(is_rounded):
    weight, bias = make_matrix((SIZE, WIDTH))
    if is_rounded:
        return lay_out(weight, bias)
    return lay_out_floats(weight.numbers * weight.scales[:, None], bias)


def work_with(num_helpers, matrix, num_rows, work):
    team = make_team(num_rows, len(matrix.panels))
    threads = [
        threading.Thread(target=run_helper, args=(matrix.panels, team)) for _ in range(num_helpers)
    ]
    for each in threads:
        each.start()
    try:
        return work(team), team
    finally:
        team.counters[IS_OVER] = 1
        for each in threads:
            each.join()


@pytest.mark.parametrize("num_helpers", [0, 1, 3])
@pytest.mark.parametrize("is_rounded", [True, False])
def test_products_are_the_same(num_helpers, is_rounded):
    matrix = make_both(is_rounded)
    for count in (1, 4, 13):
        states = make_vectors(count, WIDTH)
        products = np.empty((fill_tiles(count), matrix.outputs[:, 0].size), np.float32)

        def work(team, states=states, products=products):
            for _ in range(20):
                team.counters[IS_SLOW] = 0  # threads of a test may well be
                products[:] = np.nan
                multiply_together(states, len(states), *matrix, products, team)
                assert np.array_equal(products[: len(states)], multiply(states, matrix))

        _, team = work_with(num_helpers, matrix, count, work)
        assert team.counters[LEFT] == 0
        assert team.counters[DONE] > 0


@pytest.mark.parametrize("num_helpers", [0, 2])
@pytest.mark.parametrize("is_rounded", [True, False])
@pytest.mark.parametrize("is_normalised", [True, False])
def test_the_same_words_are_found(num_helpers, is_rounded, is_normalised):
    matrix, states = make_both(is_rounded), make_vectors(5, WIDTH)
    demands = {"banned": [3], "forced": [-1, 7, -1, SIZE - 1, -1], "is_normalised": is_normalised}
    demands["asked"] = [[0, 63, 64, SIZE - 1]] * 5
    expected = find(states, matrix, 4, **demands)

    def work(team):
        for _ in range(10):
            team.counters[IS_SLOW] = 0
            found = find(states, matrix, 4, team=team, **demands)
            assert all(map(np.array_equal, found, expected))

    _, team = work_with(num_helpers, matrix, 5, work)
    assert team.counters[DONE] == -(-len(matrix.panels) // PART)


def test_who_had_to_be_waited_for_is_not_asked_again():
    matrix, states = make_both(True), make_vectors(2, WIDTH)
    team = make_team(2, len(matrix.panels))
    assert has_helpers(team)
    team.counters[IS_SLOW] = 1
    assert not has_helpers(team)
    products = np.empty((fill_tiles(2), matrix.outputs[:, 0].size), np.float32)
    multiply_together(states, 2, *matrix, products, team)
    assert np.array_equal(products[:2], multiply(states, matrix))
    assert not team.counters[DONE]


def test_somebody_who_works_alone_shares_nothing():
    matrix, states = make_both(True), make_vectors(2, WIDTH)
    products = np.empty((fill_tiles(2), matrix.outputs[:, 0].size), np.float32)
    multiply_together(states, 2, *matrix, products, make_single_core_team())
    assert np.array_equal(products[:2], multiply(states, matrix))
    assert not has_helpers(make_single_core_team())
    assert not has_helpers(make_team(0, 1))
