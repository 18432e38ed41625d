"""Matrices laid out for tiles: every number where it belongs."""

import sys

import numpy as np
import pytest

from dragoman.eight_bits import round_matrix
from dragoman.kernels import processor
from dragoman.kernels.int8.layout import (
    COLUMNS,
    ENTRIES,
    LARGEST,
    ZERO,
    can_compile,
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
    assert matrix.panels.shape == (-(-shape[0] // COLUMNS), -(-shape[1] // ENTRIES), 256)
    assert matrix.width == shape[1]
    for output in range(shape[0]):
        panel, column = divmod(output, COLUMNS)
        groups = matrix.panels[panel, :, ENTRIES * column : ENTRIES * (column + 1)]
        assert groups.ravel()[: shape[1]].tolist() == weight.numbers[output].tolist()
        shift, scale, added = matrix.outputs[panel, :, column]
        assert shift.view(np.int32) == ZERO * weight.numbers[output].sum(dtype=np.int32)
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


@pytest.fixture
def anew():
    """Have the processor asked again, before the test and after it."""
    asked = (can_compile, processor.can_compile, processor.list_features)
    for function in asked:
        function.cache_clear()
    yield
    for function in asked:
        function.cache_clear()


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("name", ["numba", "numba.core.codegen"])
def test_without_numba_nothing_is_compiled(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    assert not can_compile()


@pytest.mark.usefixtures("anew")
@pytest.mark.parametrize("features", ["", "+avx2,-avx512vnni"])
def test_other_processors_are_left_to_pytorch(monkeypatch, features):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert not can_compile()


@pytest.mark.usefixtures("anew")
def test_nothing_is_compiled_where_the_user_says_so(monkeypatch):
    numba = pytest.importorskip("numba")
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    assert not can_compile()
