"""Incremental reading of training logs for the web page."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import FolderError
from dragoman.files import open_ordinary
from dragoman.training.log import METRICS_FILE

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


def find_runs(paths: Sequence[Path]) -> dict[str, Path]:
    """Find the named run folders.

    Returns
    -------
    dict[str, Path]
        By a name that is short and unique. A folder that has no log yet is one in which a run is
        about to begin.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise FolderError(f"{path}: is no folder; name the --out of “dragoman train”")
        inner = sorted(log.parent for log in path.glob(f"*/{METRICS_FILE}"))
        is_run = (path / METRICS_FILE).exists() or not inner
        found += [path] if is_run else inner
    different = list(dict.fromkeys(path.resolve() for path in found))
    return name_runs(different)


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
    empty = {"points": [], "validations": [], "events": [], "isMore": False}
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
    }


def _sort_events(content: bytes) -> tuple[list[list[Any]], list[dict[str, Any]], list[Any]]:
    """Sort log lines by kind of event; skip malformed ones."""
    points, validations, events = [], [], []
    for line in content.splitlines():
        try:
            event = json.loads(
                line, parse_float=_read_number, parse_int=_read_number, parse_constant=_read_number
            )
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
