"""While many translations are made, the collector looks only at what is new."""

import gc
import weakref

import pytest

from dragoman.decoding.gc_freeze import MANY, frozen_garbage_collector


class Ring:
    """Refers to itself, so that only the collector can remove it."""

    def __init__(self):
        self.me = self


def test_old_garbage_waits_and_new_garbage_goes():
    gc.collect()
    old = weakref.ref(Ring())
    with frozen_garbage_collector(MANY):
        new = weakref.ref(Ring())
        gc.collect()
        assert new() is None
        assert old() is not None
    gc.collect()
    assert old() is None


def test_everything_is_looked_at_again_after_a_failure():
    with pytest.raises(ValueError, match="broken"), frozen_garbage_collector(MANY):
        raise ValueError("broken")
    assert gc.get_freeze_count() == 0


def test_few_results_leave_the_collector_alone():
    with frozen_garbage_collector(MANY - 1):
        assert gc.get_freeze_count() == 0
    with frozen_garbage_collector(MANY):
        assert gc.get_freeze_count() > 0
