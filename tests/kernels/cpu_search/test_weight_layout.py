"""Matrices laid out for tiles: every number where it belongs."""

import numpy as np
import pytest

from dragoman.eight_bits import round_matrix
from dragoman.kernels.cpu_search.weight_layout import (
    COLUMNS,
    ENTRIES,
    LARGEST,
    find_zero,
    lay_out,
    stack,
)

SHAPES = [(64, 8), (100, 16), (3, 5), (130, 66)]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_number_is_there(shape):
    chance = np.random.default_rng(1)
    weight = round_matrix(chance.normal(size=shape).astype(np.float32))
    bias = chance.normal(size=shape[0]).astype(np.float32)
    matrix = lay_out(weight, bias)
    num_groups = 2 * -(-shape[1] // (2 * ENTRIES))
    assert matrix.panels.shape == (-(-shape[0] // COLUMNS), num_groups, 256)
    assert matrix.width == shape[1]
    for output in range(shape[0]):
        panel, column = divmod(output, COLUMNS)
        groups = matrix.panels[panel, :, ENTRIES * column : ENTRIES * (column + 1)]
        assert groups.ravel()[: shape[1]].tolist() == weight.numbers[output].tolist()
        shift, scale, added = matrix.outputs[panel, :, column]
        assert shift.view(np.int32) == find_zero() * weight.numbers[output].sum(dtype=np.int32)
        assert scale == pytest.approx(weight.scales[output] / LARGEST)
        assert added == bias[output]


def test_what_fills_a_panel_up_never_wins():
    matrix = lay_out(round_matrix(np.ones((3, 4), np.float32)), None)
    assert (matrix.outputs[0, 2, :3] == 0).all()
    assert (matrix.outputs[0, 2, 3:] == -np.inf).all()


def test_layers_lie_behind_one_another():
    matrices = [lay_out(round_matrix(np.full((3, 4), n, np.float32)), None) for n in (1, 2)]
    both = stack(iter(matrices), 2)
    for index, each in enumerate(matrices):
        assert np.array_equal(both.panels[index], each.panels)
        assert np.array_equal(both.outputs[index], each.outputs)
    assert both.width == 4
