"""The learning rate against the paper's own formula, and other schedules against theirs."""

import math
from itertools import pairwise

import pytest

from dragoman.errors import OptionError
from dragoman.training.optimisers.schedule import learning_rate, paper_peak
from dragoman.training.options import TrainingOptions


@pytest.mark.parametrize("step", [1, 10, 3999, 4000, 4001, 100_000])
@pytest.mark.parametrize("model_dim", [512, 1024])
def test_is_equation_3_of_the_paper(step, model_dim):
    paper = model_dim**-0.5 * min(step**-0.5, step * 4000**-1.5)
    found = learning_rate(step, peak=paper_peak(model_dim, 4000), warmup_steps=4000)
    assert found == pytest.approx(paper, rel=1e-12)


def test_published_peaks():
    assert paper_peak(512, 4000) == pytest.approx(6.988e-4, rel=1e-3)
    assert paper_peak(1024, 4000) == pytest.approx(4.941e-4, rel=1e-3)


def test_peak_is_reached_at_the_end_of_warm_up():
    rates = [learning_rate(step, peak=0.5, warmup_steps=10) for step in range(1, 100)]
    assert max(rates) == rates[9] == 0.5


def rate(step, schedule, **more):
    given = {"peak": 0.5, "warmup_steps": 10, "end": 110} | more
    return learning_rate(step, schedule=schedule, **given)


SCHEDULES = ["inverse-sqrt", "cosine", "warmup-stable-decay", "constant"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_every_schedule_rises_alike_and_never_jumps(schedule):
    rates = [rate(step, schedule) for step in range(1, 111)]
    assert rates[:10] == pytest.approx([0.05 * step for step in range(1, 11)])
    assert max(rates) == rates[9] == 0.5
    assert all(abs(late - early) <= 0.0501 for early, late in pairwise(rates))
    assert all(late <= early for early, late in pairwise(rates[9:]))


def test_cosine_is_half_a_wave():
    for step in range(10, 111):
        wave = 0.25 * (1 + math.cos(math.pi * (step - 10) / 100))
        assert rate(step, "cosine") == pytest.approx(wave, abs=1e-15)
    assert rate(60, "cosine") == pytest.approx(0.25)
    assert rate(110, "cosine") == rate(111, "cosine") == 0.0


def test_stable_then_a_straight_line_to_zero():
    rates = [rate(step, "warmup-stable-decay", decay_share=0.5) for step in range(1, 111)]
    assert set(rates[9:55]) == {0.5}
    assert rates[54:] == pytest.approx([0.5 * left / 55 for left in range(55, -1, -1)])
    assert rates[-1] == 0.0


def test_constant_needs_no_end():
    assert rate(10**9, "constant", end=None) == 0.5
    with pytest.raises(AssertionError):
        rate(3, "cosine", end=None)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schedule": "cosine", "max_steps": None, "max_epochs": 3},
         "training.schedule is cosine: it must know its last update; give --max-steps"),
        ({"schedule": "warmup-stable-decay", "max_steps": None, "max_minutes": 3.0},
         "is warmup-stable-decay: it must know its last update"),
        ({"schedule": "cosine", "max_steps": 50, "warmup_steps": 50},
         "training.warmup_steps is 50: too many for 50 updates"),
        ({"schedule": "warmup-stable-decay", "max_steps": 50, "warmup_steps": 41},
         "training.warmup_steps is 41: too many for 50 updates"),
        ({"decay_share": 0.0}, r"training.decay_share is 0.0: must be in \(0, 1\]"),
    ],
)  # fmt: skip
def test_what_cannot_end_is_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        TrainingOptions(**changes)


def test_schedules_that_just_fit_are_allowed():
    TrainingOptions(schedule="cosine", max_steps=50, warmup_steps=49, max_epochs=3)
    TrainingOptions(schedule="warmup-stable-decay", max_steps=50, warmup_steps=40)
    TrainingOptions(schedule="constant", max_steps=None, max_epochs=3)
