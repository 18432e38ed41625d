"""Incremental reading of training logs for the web page."""

import json
import math
import os
import re
import time
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.errors import FolderError
from dragoman.files import open_ordinary, read_small, read_start
from dragoman.folder import CONFIG_FILE
from dragoman.training.log import METRICS_FILE
from dragoman.training.run_setup import RATE_FILE

MOST_BYTES = 8 << 20
"""Of a log that are read for one answer; the page asks for the rest."""

MOST_POINTS = 2000
"""Of a curve in one answer; of more, some are left out evenly."""

_POINT = (
    *("step", "time", "loss", "learning_rate", "tokens_per_second"),
    *("share_done", "seconds_left"),
)
_VALIDATION = ("step", "time", "loss", "perplexity", "bleu", "is_best")
_OTHERS = ("start", "stagnation", "divergence", "memory", "stop", "end")

MOST_RUNS = 300
"""That are shown at once."""

MOST_FACTS = 1 << 20
"""Bytes of a configuration, and of the curve of a learning-rate test."""

LOOK_EVERY = 1.0
"""Seconds between two searches for new runs."""

_RATE_LISTS = ("rates", "losses", "smoothed")
_RATE_NUMBERS = ("steepest", "turning", "suggested")


class Run(NamedTuple):
    """A run that is watched; its number, which decides its colour, never changes."""

    number: int
    name: str
    path: Path


class WatchedRuns:
    """Training runs in some folders; those that begin later are found too.

    Parameters
    ----------
    folders : Sequence[Path]
        Run folders, or folders of such.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = tuple(folders)
        self._numbers: dict[Path, int] = {}
        for path in self._folders:
            if not path.is_dir():
                raise FolderError(f"{path}: is no folder; name the --out of “dragoman train”")
        self._look()

    def list_runs(self) -> list[Run]:
        """List the runs in the natural order of their names."""
        if time.monotonic() - self._looked > LOOK_EVERY:
            self._look()
        return self._runs

    def _look(self) -> None:
        """Search the folders; number new runs in the order in which they began."""
        found = find_runs(self._folders)
        new = [path for path in found.values() if path not in self._numbers]
        for path in sorted(new, key=_when_begun):
            self._numbers[path] = len(self._numbers)
        self._runs = [Run(self._numbers[path], name, path) for name, path in found.items()]
        self._looked = time.monotonic()


def find_runs(paths: Iterable[Path]) -> dict[str, Path]:
    """Find the run folders among folders and in them.

    Returns
    -------
    dict[str, Path]
        By a name that is short and unique, in natural order: “seed-2” before “seed-10”. A folder
        that has no log yet is one in which a run is about to begin.
    """
    found: list[Path] = []
    for path in paths:
        inner = {
            file.parent for name in (METRICS_FILE, RATE_FILE) for file in path.glob(f"*/{name}")
        }
        is_run = (path / METRICS_FILE).exists() or (path / RATE_FILE).exists() or not inner
        found += [path] if is_run else inner
    different = sorted({path.resolve() for path in found}, key=_natural)[:MOST_RUNS]
    named = name_runs(different)
    return {name: named[name] for name in sorted(named, key=_natural)}


def _natural(name: str | Path) -> list[str | int]:
    """Split a name into text and numbers, so that it sorts as a person would sort it."""
    parts = re.split("([0-9]+)", str(name))
    return [int(part) if place % 2 else part.casefold() for place, part in enumerate(parts)]


def _when_begun(path: Path) -> tuple[float, list[str | int]]:
    """Read when a run began from the first line of its log."""
    try:
        first = json.loads(read_start(path / METRICS_FILE, 1 << 16).split(b"\n")[0])
        when = first.get("time")
    except (OSError, ValueError, AttributeError, RecursionError, FolderError):
        when = None
    is_time = isinstance(when, int | float) and math.isfinite(when)
    return (float(when) if is_time else math.inf), _natural(path)


def name_runs(paths: Sequence[Path]) -> dict[str, Path]:
    """Derive short unique names for folders.

    Returns
    -------
    dict[str, Path]
        By the last part of their path, or by as many parts as tell them apart.
    """
    for count in range(1, max((len(path.parts) for path in paths), default=1) + 1):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return dict(zip(names, paths, strict=True)) if paths else {}


def read_run(path: Path, offset: int, token: str) -> dict[str, Any]:
    """Read the new events of a run’s log.

    Parameters
    ----------
    path : Path
        The run's folder.
    offset : int
        Up to where the page has read.
    token : str
        What the page was told to say of the file that it read; another one means that the log was
        written anew, as by a resumed run.

    Returns
    -------
    dict[str, Any]
        For JSON: whether to begin anew, points of curves, validations, other events, and what to
        send next time.
    """
    facts_token = _date_facts(path)
    empty = {"points": [], "validations": [], "events": [], "isMore": False, "facts": facts_token}
    try:
        with open_ordinary(path / METRICS_FILE) as file:
            facts = os.fstat(file.fileno())
            now = str(facts.st_ino)
            is_new = token != now or offset > facts.st_size
            start = 0 if is_new else offset
            file.seek(start)
            content = file.read(MOST_BYTES)
            is_more = len(content) == MOST_BYTES
    except FileNotFoundError:
        return empty | {"restarts": True, "offset": 0, "token": "", "isWaiting": True}
    except OSError as error:
        raise FolderError(
            f"{path / METRICS_FILE}: cannot be read ({error.strerror}); let the server read it"
        ) from None
    # Skip an incomplete last line.
    whole = content[: content.rfind(b"\n") + 1]
    points, validations, events = _sort_events(whole)
    return {
        "restarts": is_new,
        "offset": start + len(whole),
        "token": now,
        "isWaiting": False,
        "isMore": is_more and bool(whole),
        "points": _thin(points),
        "validations": validations,
        "events": events,
        "facts": facts_token,
    }


def read_run_facts(path: Path) -> dict[str, Any]:
    """Read what does not grow with a run: its configuration and its learning-rate test.

    Returns
    -------
    dict[str, Any]
        For JSON: ``options``, by dotted names, as text; ``rates``, the curve of the test, or None.
    """
    try:
        options = _flatten(tomllib.loads(read_small(path / CONFIG_FILE, MOST_FACTS).decode()))
    except (OSError, ValueError, RecursionError, FolderError):
        options = {}
    return {"options": options, "rates": _read_rates(path / RATE_FILE)}


def _flatten(table: dict[str, Any], before: str = "") -> dict[str, str]:
    """Flatten the tables of a TOML document to dotted names."""
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{before}{name}.")
        else:
            flat[before + name] = (
                value if isinstance(value, str) else json.dumps(value, default=str)
            )
    return flat


def _read_rates(path: Path) -> dict[str, Any] | None:
    """Read the curve of a learning-rate test; None if there is none, or none that is whole."""
    try:
        told = _read_json(read_small(path, MOST_FACTS))
        lists = {name: told[name] for name in _RATE_LISTS}
        numbers = {name: told[name] for name in _RATE_NUMBERS}
        each = [*numbers.values(), *(value for some in lists.values() for value in some)]
    except (OSError, ValueError, TypeError, KeyError, RecursionError, FolderError):
        return None
    is_even = len({len(some) for some in lists.values()}) == 1
    if not is_even or not all(_number(value) is not None for value in each):
        return None
    return lists | numbers | {"hasDiverged": told.get("has_diverged") is True}


def _date_facts(path: Path) -> str:
    """Return a token that changes when the facts of a run do."""
    dates = []
    for name in (CONFIG_FILE, RATE_FILE):
        try:
            dates.append(str((path / name).stat().st_mtime_ns))
        except OSError:
            dates.append("")
    return "-".join(dates)


def _read_json(content: bytes) -> Any:  # noqa: ANN401
    """Parse JSON; numbers that are infinite or overflow in JavaScript become None."""
    return json.loads(
        content, parse_float=_read_number, parse_int=_read_number, parse_constant=_read_number
    )


def _sort_events(content: bytes) -> tuple[list[list[Any]], list[dict[str, Any]], list[Any]]:
    """Sort log lines by kind of event; skip malformed ones."""
    points, validations, events = [], [], []
    for line in content.splitlines():
        try:
            event = _read_json(line)
            kind = event.get("event")
        except (ValueError, AttributeError, RecursionError):
            continue
        if kind == "update":
            points.append([_number(event.get(name)) for name in _POINT])
        elif kind == "validation":
            facts = {name: _number(event.get(name)) for name in _VALIDATION}
            validations.append(facts | {"probes": _probes(event)})
        elif kind in _OTHERS:
            events.append({name: event[name] for name in event if not _is_nested(event[name])})
    return points, validations, events


def _number(value: object) -> object:
    """Return a number, or None for anything else."""
    return value if isinstance(value, int | float) else None


def _probes(event: dict[str, Any]) -> list[object]:
    """Read probe translations; older logs have one “sample”."""
    probes = event.get("probes", [event.get("sample")])
    return [each for each in probes if _is_probe(each)] if isinstance(probes, list) else []


def _is_probe(value: object) -> bool:
    return isinstance(value, list) and [*map(type, value)] == [str] * 3


def _is_nested(value: object) -> bool:
    return isinstance(value, dict | list)


def _read_number(text: str) -> float | None:
    """Parse a number; None if it is infinite or overflows in JavaScript."""
    number = float(text)
    if not math.isfinite(number):
        return None
    return int(text) if text.lstrip("-").isdigit() else number


def _thin(points: list[list[Any]]) -> list[list[Any]]:
    """Downsample points evenly; keep the last."""
    stride = -(-len(points) // MOST_POINTS)
    return points[(len(points) - 1) % stride :: stride] if stride > 1 else points
