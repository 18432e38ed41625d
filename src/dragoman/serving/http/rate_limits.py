"""Leaky buckets: how often whoever has a name may do something in a minute."""

from collections.abc import Callable

from dragoman.serving.service_types import ServiceError

MOST_REMEMBERED = 10_000


class Buckets:
    """Counts by name, in memory that does not grow beyond `MOST_REMEMBERED` names.

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

    def fill(self, name: str, rate: int | None, refusal: str = "Slowdown") -> None:
        """Count once more, or refuse."""
        full_until = self.check(name, rate, refusal)
        if full_until is None:
            return
        self._full_until.pop(name, None)  # the last is the one that was counted most recently
        self._full_until[name] = full_until
        if len(self._full_until) > MOST_REMEMBERED:
            del self._full_until[next(iter(self._full_until))]

    def check(self, name: str, rate: int | None, refusal: str = "Slowdown") -> float | None:
        """Refuse if once more were too often; count nothing."""
        if rate is None:
            return None
        now = self._now()
        full_until = max(self._full_until.get(name, now), now) + 60 / rate
        wait = full_until - 60 - now
        if wait > 1e-9:
            raise ServiceError(
                "too_many_requests",
                f"{refusal}: {rate:,} per 1 minute",
                retry_after=wait,
                details={"limit": rate},
            )
        return full_until
