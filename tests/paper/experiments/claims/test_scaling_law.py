import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.paper.experiments.claims.scaling_law import EXPONENTS, fit_law

SIZES = [1e3 * 2**power for power in range(8)]


@given(floor=st.floats(0.0, 3.0), exponent=st.floats(0.1, 2.0), rise=st.floats(0.5, 5.0))
def test_a_law_without_noise_is_found_again(floor, exponent, rise):
    losses = [floor + rise * (size / SIZES[0]) ** -exponent for size in SIZES]
    law = fit_law(SIZES, losses)
    assert law.exponent == pytest.approx(exponent, abs=EXPONENTS[2])
    assert law.low <= law.exponent <= law.high
    assert [law.at(size) for size in SIZES] == pytest.approx(losses, abs=0.01)
    assert law.floor >= 0
    assert law.factor >= 0


def test_the_uncertainty_covers_the_truth_about_as_often_as_a_standard_error():
    generator = np.random.default_rng(1)
    num_covered, num_trials = 0, 200
    for _ in range(num_trials):
        clean = np.array([0.5 + 2 * (size / SIZES[0]) ** -0.5 for size in SIZES])
        law = fit_law(SIZES, clean + generator.normal(0, 0.01, len(SIZES)))
        num_covered += law.low <= 0.5 <= law.high
        assert law.deviation < 0.03
    assert 0.45 < num_covered / num_trials < 0.9


def test_more_noise_is_less_certain():
    generator = np.random.default_rng(2)
    noise = generator.normal(0, 1, len(SIZES))
    clean = np.array([0.5 + 2 * (size / SIZES[0]) ** -0.5 for size in SIZES])
    widths = [
        (law := fit_law(SIZES, clean + scale * noise)).high - law.low for scale in (0.001, 0.02)
    ]
    assert widths[0] < widths[1]


def test_three_sizes_bound_nothing():
    law = fit_law([1.0, 2.0, 4.0], [3.0, 2.0, 1.5])
    assert (law.low, law.high) == (EXPONENTS[0], pytest.approx(EXPONENTS[1], abs=2 * EXPONENTS[2]))


def test_a_loss_that_rises_has_no_power():
    law = fit_law(SIZES, [1.0 + 0.1 * index for index in range(len(SIZES))])
    assert law.factor == 0
    assert law.floor == pytest.approx(1.35)
