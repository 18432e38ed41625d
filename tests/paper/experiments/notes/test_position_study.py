"""Verdicts, offset maps and wavelengths as the paper and the notes have them."""

import math

import pytest

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.position_study import (
    PositionsOptions,
    measure_offset_error,
    run,
)


@pytest.fixture(scope="module")
def experiment():
    options = PositionsOptions(max_positions=256, longest=2000, last_position=4000)
    return run(options, lambda _: None)


def test_verdicts(experiment):
    criteria = experiment.table("criteria")
    failed = {
        row[0]: [column.heading for column, cell in zip(criteria.columns, row, strict=True)
                 if cell is False]
        for row in criteria.rows
    }  # fmt: skip
    assert failed == {
        "sinusoidal": [],
        "learned": ["goes on, bounded"],
        "normalised to [0, 1]": ["consistent"],
        "plain index": ["goes on, bounded"],
        "none": ["unique"],
        "rotary": [],
        "ALiBi": ["goes on, bounded"],
        "relative": ["unique"],
    }


def test_offset_maps_are_exact(experiment):
    offsets = experiment.table("offsets")
    assert max(offsets.numbers("largest error")) < 1e-12
    assert max(offsets.numbers("from a rotation (M Mᵀ − 1)")) < 1e-14
    assert max(offsets.numbers("from M₁ taken k times")) < 1e-12
    assert measure_offset_error(0, 16, 10) == 0


def test_wavelengths(experiment):
    waves = experiment.table("wavelengths").numbers("wavelength (positions)")
    assert waves[0] == pytest.approx(2 * math.pi)
    assert waves[-1] == pytest.approx(60_611, abs=1)
    assert "60,611" in experiment.findings[2]
    assert "62,832" in experiment.findings[2]


def test_products_tell_the_distance_only(experiment):
    products = experiment.table("products")
    assert products.rows[0][1] == pytest.approx(256)
    assert max(products.numbers("largest difference")) < 1e-10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_dim": 17}, "--model-dim is 17: give an even number ≥ 16"),
        ({"longest": 100}, "--longest is 100: give ≥ 129"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        PositionsOptions(**options)
