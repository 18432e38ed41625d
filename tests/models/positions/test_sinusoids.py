"""The sinusoids against their formula."""

import math

import numpy as np
import pytest

from dragoman.models.positions.sinusoids import sinusoids, wavelengths


@pytest.mark.parametrize(("is_inclusive", "whole"), [(False, 8), (True, 6)])
def test_every_entry_is_the_formula(is_inclusive, whole):
    table = sinusoids(3, 4, 8, is_inclusive=is_inclusive)
    for row in range(4):
        for pair in range(4):
            angle = (3 + row) / 10_000 ** (2 * pair / whole)
            expected = (math.sin(angle), math.cos(angle))
            assert tuple(table[row, 2 * pair : 2 * pair + 2]) == pytest.approx(expected)


def test_wavelengths_grow_from_one():
    waves = wavelengths(512)
    assert waves[0] == 1
    assert np.allclose(waves[1:] / waves[:-1], 10_000 ** (2 / 512))
    assert wavelengths(512, is_inclusive=True)[-1] == pytest.approx(10_000)
