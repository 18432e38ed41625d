"""Requests and characters of clients, counted in a database that several servers share.

Each count is one statement, which the database executes as a whole: of two servers that charge the
last characters of a quota, one succeeds.
"""

import itertools

from dragoman.serving.state import memory_counts
from dragoman.serving.state.client_names import name_in_state
from dragoman.serving.state.database import Database
from dragoman.serving.state.memory_counts import Bucket

SWEEP_EVERY = 1000
"""Counted requests after which buckets that have run empty are deleted."""
_NO_LIMIT = 1 << 62

_COUNT = """
INSERT INTO dragoman_buckets (bucket, client, full_until) VALUES (?, ?, {now} + ?)
ON CONFLICT (bucket, client) DO UPDATE SET full_until = ? + CASE
    WHEN dragoman_buckets.full_until > {now} THEN dragoman_buckets.full_until ELSE {now} END
WHERE dragoman_buckets.full_until + ? - 60.0 <= {now} + 0.000001
RETURNING full_until
"""
_WAIT = """
SELECT full_until + ? - 60.0 - {now} FROM dragoman_buckets WHERE bucket = ? AND client = ?
"""
_SWEEP = "DELETE FROM dragoman_buckets WHERE full_until < {now}"
_TRIM = """
DELETE FROM dragoman_buckets WHERE bucket = ? AND full_until <= (
    SELECT full_until FROM dragoman_buckets WHERE bucket = ?
    ORDER BY full_until DESC LIMIT 1 OFFSET ?
)
"""
_CHARGE = """
INSERT INTO dragoman_usage (client, month, characters) VALUES (?, ?, ?)
ON CONFLICT (client, month) DO UPDATE SET characters = dragoman_usage.characters + ?
WHERE dragoman_usage.characters + ? <= ?
RETURNING characters
"""
_REFUND = """
UPDATE dragoman_usage SET characters = CASE WHEN characters > ? THEN characters - ? ELSE 0 END
WHERE client = ? AND month = ?
"""
_USED = "SELECT characters FROM dragoman_usage WHERE client = ? AND month = ?"


class SharedCounts:
    """Counts in a database; does what `MemoryCounts` does.

    Parameters
    ----------
    database : Database
        Where they are.

    Notes
    -----
    Time is the database's, so that servers whose clocks differ agree. Usage of earlier months stays
    for whoever wants to read it: a row for each key and month.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._num_counted = itertools.count(1)

    def count(self, bucket: Bucket, name: str, rate: int) -> float | None:
        """Count a request; if the bucket is full, count nothing and return the seconds to wait."""
        client, each = name_in_state(name), 60 / rate
        if self._database.execute(_COUNT, bucket, client, each, each, each):
            if next(self._num_counted) % SWEEP_EVERY == 0:
                self.sweep()
            return None
        # It may have got room between the two statements.
        return self.wait(bucket, name, rate) or 0.001

    def wait(self, bucket: Bucket, name: str, rate: int) -> float | None:
        """Return the seconds until a request would be counted; None: now."""
        rows = self._database.execute(_WAIT, 60 / rate, bucket, name_in_state(name))
        wait = float(rows[0][0]) if rows else 0.0
        return wait if wait > 1e-6 else None

    def sweep(self) -> None:
        """Delete the buckets that have run empty, and of too many the emptiest."""
        buckets: tuple[Bucket, ...] = ("requests", "wrong keys")
        with self._database.transaction():
            self._database.execute(_SWEEP)
            for bucket in buckets:
                self._database.execute(_TRIM, bucket, bucket, memory_counts.MAX_CLIENTS)

    def charge(self, name: str, month: str, num_characters: int, limit: int | None) -> int | None:
        """Count characters; above the limit, count nothing and return those used so far."""
        most = _NO_LIMIT if limit is None else limit
        client, number = name_in_state(name), num_characters
        if number <= most and self._database.execute(
            _CHARGE, client, month, number, number, number, most
        ):
            return None
        return self.used(name, month)

    def refund(self, name: str, month: str, num_characters: int) -> None:
        """Return characters of a month."""
        number = num_characters
        self._database.execute(_REFUND, number, number, name_in_state(name), month)

    def used(self, name: str, month: str) -> int:
        """Return the characters counted in a month."""
        rows = self._database.execute(_USED, name_in_state(name), month)
        return int(rows[0][0]) if rows else 0
