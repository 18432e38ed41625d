"""Limits, requests to stop, and whose word counts."""

import dataclasses
import os
import signal
import threading

import pytest

from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.options import TrainingOptions
from dragoman.training.stopping import (
    INTERRUPTED,
    EndEstimator,
    decide,
    describe_short_run,
    limit_reached,
    share_done,
    stop_requests,
    terminable,
)
from dragoman.training.updates.distributed import Workers


class Two(Workers):
    """Two workers, of which the other's message is given."""

    other = (0, 0, 0, 0)

    def all_reduce_max(self, *values):
        return tuple(map(max, values, self.other))


def worker(rank, *other):
    return type("Pretended", (Two,), {"other": other})(rank=rank, num_workers=2)


def test_the_first_worker_decides_on_limits_and_all_may_stop():
    options = TrainingOptions(max_steps=5, save_minutes=1)
    before, over = Progress(step=4), Progress(step=5)
    assert decide(options, before, Workers()) == ("", False, 0)
    assert decide(options, over, Workers()).limit == "5 updates done"
    assert decide(options, before, Workers(), ["now"]).limit == INTERRUPTED
    assert decide(options, before, Workers(), seconds_unsaved=61).is_save_due
    # What a worker that is not the first sees on its own clock does not count.
    second = worker(1, 0, 0, 0, 3)
    assert decide(options, over, second, seconds_unsaved=61, num_parts=2) == ("", False, 3)
    assert decide(options, before, worker(1, 0, 1, 1, 0)).is_save_due
    assert decide(options, before, worker(1, 0, 1, 0, 0)).limit
    assert decide(options, over, worker(0, 1, 0, 0, 0)).limit == INTERRUPTED


def test_limits_in_words():
    options = TrainingOptions(max_steps=9, max_epochs=2, max_minutes=3, patience=4)
    assert limit_reached(options, Progress(step=8, epoch=1, seconds=179, num_worse=3)) == ""
    assert limit_reached(options, Progress(epoch=2)) == "2 passes over the corpus done"
    assert limit_reached(options, Progress(seconds=180)) == "3 minutes passed"
    worse = Progress(num_worse=4, best_step=7)
    assert limit_reached(options, worse) == "no better validation since step 7"


def test_share_done_is_that_of_the_nearest_limit():
    options = TrainingOptions(max_steps=100, max_minutes=10)
    assert share_done(options, Progress()) == 0
    assert share_done(options, Progress(step=50, seconds=60)) == pytest.approx(0.5)
    assert share_done(options, Progress(step=1, seconds=300)) == pytest.approx(0.5)
    assert share_done(options, Progress(step=101)) == 1


def test_nothing_is_foreseen_by_patience_nor_before_a_pass_is_measured():
    assert share_done(TrainingOptions(max_steps=None, patience=3), Progress(step=7)) is None
    passes = TrainingOptions(max_steps=1000, max_epochs=4)
    assert share_done(passes, Progress(step=10, epoch_updates=10)) is None
    # Ten updates a pass: 25 of 40 are done, which is nearer than 25 of 1000.
    measured = Progress(step=25, epoch=2, epoch_updates=5)
    assert share_done(passes, measured) == pytest.approx(25 / 40)
    # A longer pass does not count as two.
    assert share_done(passes, Progress(step=35, epoch=2, epoch_updates=15)) == pytest.approx(3 / 4)


def test_a_run_too_short_to_learn_anything_says_so_and_how_long_would_do():
    options = TrainingOptions(max_steps=4000, schedule="cosine", warmup_steps=9, max_minutes=1.5)
    planned = Progress(step=23, seconds=46, wall_seconds=90, planned_seconds=90)
    assert describe_short_run(options, planned) == (
        "only 23 updates fitted into 1.5 minutes, 44 seconds of which went to preparing, compiling "
        "and validating: the model has hardly learnt anything; give --max-minutes 35 or more"
    )
    free = TrainingOptions(max_steps=None, max_minutes=2)
    assert describe_short_run(free, Progress(step=150, seconds=120, wall_seconds=150)).endswith(
        "give --max-minutes 14 or more"
    )
    assert describe_short_run(options, dataclasses.replace(planned, step=200)) == ""
    assert describe_short_run(TrainingOptions(), Progress(step=23, seconds=46)) == ""
    # Few updates were asked for; the time would have done for more.
    assert describe_short_run(options, Progress(step=23, seconds=46, wall_seconds=90)) == ""


class Clock:
    """Tells the time that a test sets."""

    now = 1000.0

    def __call__(self):
        return self.now


def test_time_left_goes_by_the_pace_since_the_run_was_started_validations_included():
    options, clock = TrainingOptions(max_steps=100), Clock()
    pace = EndEstimator(clock)
    # Resumed at half: all that is known are sixty seconds of training for fifty updates.
    assert pace.estimate(options, Progress(step=50, seconds=60)) == (0.5, pytest.approx(60))
    # Here ten updates take 30 seconds, of which only 20 are training.
    clock.now += 30
    share, left = pace.estimate(options, Progress(step=60, seconds=80))
    assert (share, left) == (pytest.approx(0.6), pytest.approx(120))
    clock.now += 120
    assert pace.estimate(options, Progress(step=100, seconds=160)) == (1, pytest.approx(0))


def test_pace_is_measured_anew_after_going_back_and_tells_no_end_that_is_not_foreseen():
    options, clock = TrainingOptions(max_steps=100), Clock()
    pace = EndEstimator(clock)
    assert pace.estimate(options, Progress()) == (0, None)
    pace.estimate(options, Progress(step=50, seconds=50))
    clock.now += 500
    assert pace.estimate(options, Progress(step=20, seconds=20)) == (0.2, pytest.approx(80))
    clock.now += 10
    assert pace.estimate(options, Progress(step=30, seconds=30)) == (0.3, pytest.approx(70))
    endless = TrainingOptions(max_steps=None, patience=3)
    assert EndEstimator(clock).estimate(endless, Progress(step=9, seconds=9)) == (None, None)


def test_requests_are_noted_and_the_second_interrupt_is_heeded():
    before = signal.getsignal(signal.SIGINT)
    with stop_requests() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        assert stop == [INTERRUPTED] * 2
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_outside_of_the_main_thread_signals_are_left_alone():
    found = []

    def ask():
        with stop_requests() as stop:
            found.append(stop)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [[]]


def test_termination_interrupts_where_that_is_wanted():
    before = signal.getsignal(signal.SIGTERM)
    with terminable(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before
