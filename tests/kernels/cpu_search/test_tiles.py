"""Products in eight bits: exact for what was rounded, whatever the neighbours."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.eight_bits import round_matrix
from dragoman.kernels.cpu_search.layout import LARGEST, find_zero, lay_out
from dragoman.kernels.cpu_search.tiles import ROWS, fill_tiles, multiply_rows, round_rows

SHAPES = [(64, 8), (100, 16), (3, 5), (130, 66)]


def make_matrix(shape, seed=1):
    chance = np.random.default_rng(seed)
    weight = round_matrix(chance.normal(size=shape).astype(np.float32))
    return weight, chance.normal(size=shape[0]).astype(np.float32)


def make_vectors(count, width):
    chance = np.random.default_rng(2)
    sizes = np.logspace(-2, 2, count)[:, None]
    return (chance.normal(size=(count, width)) * sizes).astype(np.float32)


def multiply(states, matrix):
    products = np.empty((fill_tiles(len(states)), matrix.outputs[:, 0].size), np.float32)
    multiply_rows(states, len(states), *matrix, products)
    return products[: len(states)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 6, 11])
def test_products_are_exact_for_what_was_rounded(shape, count):
    weight, bias = make_matrix(shape)
    states = make_vectors(count, shape[1])
    steps = np.abs(states).max(1, keepdims=True) / LARGEST
    rounded = np.rint(states / steps) * steps.astype(np.float64)
    expected = rounded @ (weight.numbers * weight.scales[:, None].astype(np.float64)).T + bias
    found = multiply(states, lay_out(weight, bias))[:, : shape[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_neighbours_change_no_bit():
    states, matrix = make_vectors(13, 66), lay_out(*make_matrix((130, 66)))
    together = multiply(states, matrix)
    for row in range(13):
        assert np.array_equal(multiply(states[row : row + 1], matrix)[0], together[row])


def test_the_largest_entries_are_rounded_to_the_ends():
    states = np.array([[1, -2, 0.5, 0], [0, 0, 0, 0]], np.float32)
    rounded, sizes = round_rows(states, 2, 4, 2)
    assert rounded.shape == (ROWS, 8)
    entries = (rounded[:2, :4].astype(np.int64) - find_zero() + 128) % 256 - 128
    assert entries.tolist() == [[64, -LARGEST, 32, 0], [0] * 4]
    assert sizes[0] == 2
    assert not rounded[:, 4:].any()


@pytest.mark.parametrize(("count", "tiles"), [(0, 0), (1, 1), (ROWS, 1), (ROWS + 1, 2)])
def test_tiles_are_filled(count, tiles):
    assert fill_tiles(count) == tiles * ROWS
