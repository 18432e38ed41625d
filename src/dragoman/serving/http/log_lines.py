"""Rate-limited, shortened log lines."""

import logging
import time
from collections.abc import Callable

LONGEST_LINE = 300
LINES_PER_MINUTE = 10
"""Of each place in the code that logs."""


class LogRateLimiter(logging.Filter):
    """Limits log lines per minute for each call site, and counts those dropped.

    Parameters
    ----------
    now : Callable[[], float]
        Tells the seconds since some moment.

    Notes
    -----
    The last line of a minute says that others are left out, the next one how many. The places
    are as many as there are calls in the code: clients cannot make more of them.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._counts: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        place, now = (record.pathname, record.lineno), self._now()
        began, count = self._counts.get(place, (now, 0))
        suppressed = 0
        if now - began >= 60:
            suppressed, began, count = max(0, count - LINES_PER_MINUTE), now, 0
        self._counts[place] = began, count + 1
        if count >= LINES_PER_MINUTE:
            return False
        note = f"{suppressed:,} such lines were left out in an earlier minute" if suppressed else ""
        if count == LINES_PER_MINUTE - 1:
            note = "more such lines are left out for a minute"
        _shorten(record, note)
        return True


def limit_log_lines() -> None:
    """Log warnings to standard error, rate-limited."""
    handler = logging.StreamHandler()
    handler.setLevel(logging.WARNING)
    handler.addFilter(LogRateLimiter())
    logging.getLogger().addHandler(handler)


def _shorten(record: logging.LogRecord, note: str) -> None:
    """Reduce a record to one short printable line."""
    text = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        text += f": {record.exc_info[0].__name__}"
    shown = text.encode("unicode_escape").decode() if not text.isprintable() else text
    line = shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]}…"
    record.msg, record.args = f"{line} ({note})" if note else line, None
    record.exc_info = record.exc_text = record.stack_info = None
