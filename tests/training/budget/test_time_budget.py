"""A planned run keeps to its minutes: it is corrected if the machine is slower or faster."""

import pytest

from dragoman.training.budget.time_budget import (
    BudgetCorrector,
    has_budget,
    last_update,
    schedule_position,
)
from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.options import TrainingOptions
from dragoman.training.stopping import limit_reached, share_done

OPTIONS = TrainingOptions(
    schedule="cosine", warmup_steps=10, max_steps=1000, max_minutes=10.0, validate_every=100
)


def keep(pace, *, validation=2.0, step=300, before=20.0, planned=600.0):
    """Say what is corrected after some updates at a pace."""
    keeper = BudgetCorrector(OPTIONS, Progress(planned_seconds=planned, wall_seconds=before))
    seconds = pace * step
    progress = Progress(
        step=step, seconds=seconds, planned_seconds=planned,
        wall_seconds=before + seconds + step // 100 * validation,
    )  # fmt: skip
    return keeper.correct(progress, validation), progress


def test_a_run_at_its_pace_is_left_alone():
    told, progress = keep(0.54)
    assert told == ""
    assert last_update(OPTIONS, progress) == 1000
    assert schedule_position(OPTIONS, progress) == 300


@pytest.mark.parametrize(("pace", "word"), [(0.8, "slower"), (0.3, "faster")])
def test_the_schedule_still_ends_with_the_minutes(pace, word):
    told, progress = keep(pace)
    assert word in told
    end = last_update(OPTIONS, progress)
    foreseen = progress.wall_seconds + (end - 300) * (pace + 0.02)
    assert foreseen == pytest.approx(600 - 12, abs=2)
    assert schedule_position(OPTIONS, progress) == 300
    progress.step = end
    assert schedule_position(OPTIONS, progress) == pytest.approx(1000)
    assert limit_reached(OPTIONS, progress) == f"{end:,} updates done"
    assert share_done(OPTIONS, progress) == pytest.approx(1.0)


def test_a_second_correction_goes_on_from_the_first():
    _, progress = keep(0.8)
    position = schedule_position(OPTIONS, progress)
    progress.step += 100
    progress.seconds += 20
    progress.wall_seconds += 22
    keeper = BudgetCorrector(OPTIONS, Progress(step=300, seconds=240))
    before = schedule_position(OPTIONS, progress)
    assert before > position
    progress.step += 100
    progress.seconds += 20
    before = schedule_position(OPTIONS, progress)
    assert "faster" in keeper.correct(progress, 2.0)
    assert schedule_position(OPTIONS, progress) == pytest.approx(before)


def test_too_little_is_not_believed_and_a_plan_for_less_is_not_stretched():
    assert keep(2.0, step=100)[0] == ""
    assert keep(0.2, planned=250.0)[0] == ""


def test_only_planned_runs_have_a_budget():
    assert has_budget(OPTIONS)
    assert not has_budget(TrainingOptions(max_minutes=3.0))
    assert not has_budget(TrainingOptions(schedule="cosine", warmup_steps=10, max_steps=100))
    free = TrainingOptions(max_minutes=1.0)
    assert limit_reached(free, Progress(seconds=61.0)) == "1 minutes passed"
