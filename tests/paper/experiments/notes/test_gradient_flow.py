"""Gradient norm against distance."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.gradient_flow import GradientsOptions, fit_decay, run
from dragoman.paper.tasks.name_recall import KINDS

TINY = GradientsOptions(max_distance=20, steps=0, seeds=2, sentences=1)


def test_distances_double():
    assert TINY.distances == (5, 10, 20)
    assert GradientsOptions().distances == (5, 10, 20, 40, 80, 160)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_distance": 19}, "--max-distance is 19: give ≥ 20"),
        ({"steps": -1}, "--steps is -1: give ≥ 0"),
        ({"limit": 5}, "--limit is 5: give ≥ 6"),
        ({"seeds": 0}, "--seeds is 0: give ≥ 1"),
        ({"sentences": 0}, "--sentences is 0: give ≥ 1"),
    ],
)
def test_bad_options_are_refused(wrong, message):
    with pytest.raises(OptionError, match=message):
        GradientsOptions(**wrong)


@given(st.floats(0.5, 1.5).filter(lambda factor: abs(factor - 1) > 0.01), st.floats(0.1, 10))
def test_exponential_laws_are_found_again(factor, size):
    distances = (5, 10, 20, 40)
    decay = fit_decay(distances, [size * factor**each for each in distances])
    assert decay.factor == pytest.approx(factor, rel=1e-9)
    assert decay.is_exponential


@given(st.floats(-3, 3).filter(lambda exponent: abs(exponent) > 0.01), st.floats(0.1, 10))
def test_power_laws_are_found_again(exponent, size):
    distances = (5, 10, 20, 40)
    decay = fit_decay(distances, [size * each**exponent for each in distances])
    assert decay.exponent == pytest.approx(exponent, rel=1e-9)
    assert not decay.is_exponential


def test_what_stays_stays():
    assert fit_decay((5, 10, 20), (2.0, 2.0, 2.0))[:2] == (1.0, 0.0)


@pytest.fixture(scope="module")
def fresh():
    return run(TINY, lambda _: None)


def test_fresh_chains_vanish_by_a_factor_and_attention_does_not(fresh):
    rates = fresh.table("rates")
    assert rates.column("reader") == list(KINDS)
    factors = dict(zip(KINDS, rates.numbers("factor per word"), strict=True))
    left = dict(zip(KINDS, rates.numbers("left at the longest"), strict=True))
    assert factors["RNN"] < 0.95
    assert left["GRU"] < left["RNN"] < left["Transformer"]
    for kind in ("Transformer", "Transformer without positions"):
        # An average over n words leaves about 1/n of each.
        assert left[kind] == pytest.approx(5 / 20, rel=0.5)


def test_radii_tell_the_powers_of_the_matrix_and_what_explodes(fresh):
    radii = fresh.table("radii")
    sizes = radii.numbers("spectral radius")
    assert radii.numbers("factor, silent") == pytest.approx(sizes, rel=1e-6)
    reading = radii.numbers("factor, reading")
    assert all(read < size for read, size in zip(reading, sizes, strict=True))
    assert reading[-1] > 1 > reading[0]


def test_trained_readers_are_told_beside_fresh_ones():
    options = GradientsOptions(max_distance=20, steps=1, limit=6, seeds=1, sentences=1)
    experiment = run(options, lambda _: None)
    assert experiment.table("rates").column("weights") == ["fresh"] * 6 + ["trained"] * 6
    (plot,) = experiment.plots
    assert len(plot.panels) == 4
    assert all(math.isfinite(y) for panel in plot.panels for each in panel.series for y in each.y)
