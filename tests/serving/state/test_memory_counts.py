"""Counts in memory, and their leaky buckets; what all states do is in test_server_state.py."""

import pytest

from dragoman.serving.state import memory_counts as module
from dragoman.serving.state.memory_counts import MemoryCounts, RateLimiter


@pytest.fixture
def moment():
    return [1000.0]


@pytest.fixture
def buckets(moment):
    return RateLimiter(lambda: moment[0])


def test_a_minute_s_worth_may_come_at_once_and_then_one_by_one(buckets, moment):
    assert [buckets.count("ann", 6) for _ in range(6)] == [None] * 6
    assert buckets.count("ann", 6) == pytest.approx(10)
    assert buckets.count("bob", 6) is None
    moment[0] += 10
    assert buckets.count("ann", 6) is None
    assert buckets.wait("ann", 6) == pytest.approx(10)


def test_asking_for_the_wait_counts_nothing(buckets):
    assert [buckets.wait("ann", 1) for _ in range(9)] == [None] * 9
    assert buckets.count("ann", 1) is None


def test_of_too_many_names_the_least_recent_is_forgotten(buckets, monkeypatch):
    monkeypatch.setattr(module, "MAX_CLIENTS", 3)
    for name in ("ann", "bob", "cleo", "ann", "dan", "eve"):
        buckets.count(name, 2)
        assert len(buckets._full_until) <= 3
    assert set(buckets._full_until) == {"ann", "dan", "eve"}


def test_of_earlier_months_nothing_is_remembered():
    counts = MemoryCounts()
    counts.charge("ann", "2026-11", 5, None)
    assert counts.used("ann", "2026-12") == 0
    assert counts.used("ann", "2026-11") == 0
