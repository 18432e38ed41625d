"""Find what is said several times in a row."""

from collections.abc import Sequence
from typing import NamedTuple


class Repetition(NamedTuple):
    """Units that are repeated several times in a row."""

    start: int
    period: int
    num_times: int


def find_repetition(units: Sequence[str], longest: int) -> Repetition:
    """Find the most often repeated sequence of units.

    Returns
    -------
    Repetition
        The one with the highest count, the shortest of those; a count of 1: nothing is repeated.
    """
    best = Repetition(0, max(1, len(units)), 1)
    for period in range(1, min(longest, len(units) // 2) + 1):
        length = 0
        for place in range(period, len(units)):
            length = length + 1 if units[place] == units[place - period] else 0
            count = 1 + length // period
            if count > best.num_times:
                best = Repetition(place - count * period + 1, period, count)
    return best
