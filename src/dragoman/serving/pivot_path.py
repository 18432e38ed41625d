"""The languages that the texts of a request passed through, for whoever writes its answer."""

from collections.abc import Iterable
from contextvars import ContextVar

# The ways of the request that the present task answers, in the order in which they were taken.
_ways: ContextVar[dict[tuple[str, ...], None] | None] = ContextVar("ways", default=None)


def begin_passage() -> None:
    """Take note, from now on, of the ways that texts of this task's request take."""
    _ways.set({})


def note_ways(ways: Iterable[tuple[str, ...]]) -> None:
    """Say which languages texts passed through."""
    known = _ways.get()
    if known is not None:
        known.update(dict.fromkeys(way for way in ways if len(way) > 2))


def describe_passage() -> str:
    """Say which ways through a third language texts of this task's request took."""
    ways = ", ".join("-".join(way) for way in _ways.get() or {})
    return "".join(each if each.isascii() and each.isprintable() else "?" for each in ways)
