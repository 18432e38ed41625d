"""Requests and characters of clients, counted in memory."""

import time
from collections.abc import Callable
from typing import Literal

MAX_CLIENTS = 10_000
"""Clients whose requests, and addresses whose wrong keys, are remembered."""

Bucket = Literal["requests", "wrong keys"]


class MemoryCounts:
    """Counts in memory, from nothing when the server begins.

    Parameters
    ----------
    now : Callable[[], float]
        Tells the seconds since some moment.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._limiters: dict[Bucket, RateLimiter] = {
            "requests": RateLimiter(now),
            "wrong keys": RateLimiter(now),
        }
        self._characters: dict[str, int] = {}
        self._month = ""

    def count(self, bucket: Bucket, name: str, rate: int) -> float | None:
        """Count a request; if the bucket is full, count nothing and return the seconds to wait."""
        return self._limiters[bucket].count(name, rate)

    def wait(self, bucket: Bucket, name: str, rate: int) -> float | None:
        """Return the seconds until a request would be counted; None: now."""
        return self._limiters[bucket].wait(name, rate)

    def charge(self, name: str, month: str, num_characters: int, limit: int | None) -> int | None:
        """Count characters; above the limit, count nothing and return those used so far."""
        used = self.used(name, month)
        if limit is not None and used + num_characters > limit:
            return used
        self._characters[name] = used + num_characters
        return None

    def refund(self, name: str, month: str, num_characters: int) -> None:
        """Return characters of a month."""
        self._characters[name] = max(0, self.used(name, month) - num_characters)

    def used(self, name: str, month: str) -> int:
        """Return the characters counted in a month; of earlier months nothing is remembered."""
        if month != self._month:
            self._month = month
            self._characters.clear()
        return self._characters.get(name, 0)


class RateLimiter:
    """Leaky buckets by client name, for at most `MAX_CLIENTS` names.

    Parameters
    ----------
    now : Callable[[], float]
        Tells the seconds since some moment.

    Notes
    -----
    A minute's worth may come at once, then one each 60/n seconds. When there are too many names,
    the one that was counted least recently is forgotten: whoever has so many addresses gains more
    by using them than by being forgotten.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._full_until: dict[str, float] = {}

    def count(self, name: str, rate: int) -> float | None:
        """Count one request; if the bucket is full, return the seconds to wait."""
        full_until, wait = self._next(name, rate)
        if wait is not None:
            return wait
        self._full_until.pop(name, None)  # the last is the one that was counted most recently
        self._full_until[name] = full_until
        if len(self._full_until) > MAX_CLIENTS:
            del self._full_until[next(iter(self._full_until))]
        return None

    def wait(self, name: str, rate: int) -> float | None:
        """Return the seconds until the bucket has room for a request; None: it has."""
        return self._next(name, rate)[1]

    def _next(self, name: str, rate: int) -> tuple[float, float | None]:
        """Return until when the bucket is full after one more request, and the wait for it."""
        now = self._now()
        full_until = max(self._full_until.get(name, now), now) + 60 / rate
        wait = full_until - 60 - now
        return full_until, wait if wait > 1e-9 else None
