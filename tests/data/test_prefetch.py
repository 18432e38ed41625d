"""Running ahead gives the same, raises the same, and stops when nobody listens."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.prefetch import prefetched


@given(items=st.lists(st.integers()), depth=st.integers(1, 5))
def test_gives_the_same_items_in_order(items, depth):
    assert list(prefetched(iter(items), depth)) == items


def test_runs_ahead_but_not_too_far():
    made = []

    def make():
        for number in range(100):
            made.append(number)
            yield number

    stream = prefetched(make(), depth=3)
    next(stream)
    deadline = time.monotonic() + 5
    while len(made) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    # One was taken, three are ready, one waits for room.
    assert len(made) == 5
    stream.close()


def test_works_in_another_thread():
    def name():
        yield threading.get_ident()

    assert next(prefetched(name())) != threading.get_ident()


def test_raises_what_the_items_raise_after_those_before():
    def fail():
        yield 1
        raise ArithmeticError("no")

    stream = prefetched(fail())
    assert next(stream) == 1
    with pytest.raises(ArithmeticError, match="no"):
        next(stream)


def test_stops_when_abandoned():
    before = threading.active_count()
    made = []

    def endless():
        while True:
            made.append(1)
            yield 1

    stream = prefetched(endless(), depth=2)
    next(stream)
    stream.close()
    assert threading.active_count() == before
    count = len(made)
    time.sleep(0.05)
    assert len(made) == count
