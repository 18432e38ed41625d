"""While many translations are made, the collector looks only at what is new."""

import gc
import weakref

import pytest

from dragoman.decoding.gc_freeze import MANY, only_new_garbage


class Ring:
    """Refers to itself, so that only the collector can remove it."""

    def __init__(self):
        self.me = self


def test_old_garbage_waits_and_new_garbage_goes():
    gc.collect()
    old = weakref.ref(Ring())
    with only_new_garbage(MANY):
        new = weakref.ref(Ring())
        gc.collect()
        assert new() is None
        assert old() is not None
    gc.collect()
    assert old() is None


def test_everything_is_looked_at_again_after_a_failure():
    with pytest.raises(ValueError, match="broken"), only_new_garbage(MANY):
        raise ValueError("broken")
    assert gc.get_freeze_count() == 0


def test_few_results_leave_the_collector_alone():
    with only_new_garbage(MANY - 1):
        assert gc.get_freeze_count() == 0
    with only_new_garbage(MANY):
        assert gc.get_freeze_count() > 0
