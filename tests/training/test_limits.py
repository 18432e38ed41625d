"""Limits, requests to stop, and whose word counts."""

import os
import signal
import threading

import pytest

from dragoman.training.checkpoint import Progress
from dragoman.training.distributed import Workers
from dragoman.training.limits import (
    INTERRUPTED,
    decide,
    limit_reached,
    seconds_left,
    stop_requests,
    terminable,
)
from dragoman.training.options import TrainingOptions


class Two(Workers):
    """Two workers, of which the other's message is given."""

    other = (0, 0, 0, 0)

    def agree(self, *values):
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


def test_time_left_is_that_of_the_nearest_limit():
    options = TrainingOptions(max_steps=100, max_minutes=10)
    assert seconds_left(options, Progress()) is None
    assert seconds_left(options, Progress(step=50, seconds=60)) == pytest.approx(60)
    assert seconds_left(options, Progress(step=1, seconds=300)) == pytest.approx(300)


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
