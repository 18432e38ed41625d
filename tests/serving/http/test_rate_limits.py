"""Buckets leak, and do not grow however many names there are."""

import pytest

from dragoman.serving.http import rate_limits as module
from dragoman.serving.http.rate_limits import Buckets
from dragoman.serving.service_types import ServiceError


@pytest.fixture
def moment():
    return [1000.0]


@pytest.fixture
def buckets(moment):
    return Buckets(lambda: moment[0])


def test_a_minute_s_worth_may_come_at_once_and_then_one_by_one(buckets, moment):
    for _ in range(6):
        buckets.fill("ann", 6)
    with pytest.raises(ServiceError, match="Slowdown: 6 per 1 minute") as caught:
        buckets.fill("ann", 6)
    assert caught.value.retry_after == pytest.approx(10)
    buckets.fill("bob", 6)
    moment[0] += 10
    buckets.fill("ann", 6)
    with pytest.raises(ServiceError):
        buckets.check("ann", 6)


def test_checking_counts_nothing(buckets):
    for _ in range(9):
        buckets.check("ann", 1)
    buckets.fill("ann", 1)


def test_without_a_rate_nothing_is_remembered(buckets):
    buckets.fill("ann", None)
    assert not buckets._full_until


def test_of_too_many_names_the_least_recent_is_forgotten(buckets, monkeypatch):
    monkeypatch.setattr(module, "MOST_REMEMBERED", 3)
    for name in ("ann", "bob", "cleo", "ann", "dan", "eve"):
        buckets.fill(name, 2)
        assert len(buckets._full_until) <= 3
    assert set(buckets._full_until) == {"ann", "dan", "eve"}
