"""Memory-mapped arrays, and small JSON files with a checksum beside them."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from dragoman.data.batches import FlatSequences
from dragoman.files import digest_of, write_file
from dragoman.shapes import Int

SIDES = ("source", "target")


def mapped(path: Path, kind: type = np.int64) -> np.ndarray:
    """Memory-map a file of numbers."""
    if not path.stat().st_size:
        return np.zeros(0, dtype=kind)
    return np.asarray(np.memmap(path, dtype=kind, mode="r"))


def slice_of(values: np.ndarray, ends: Int[np.ndarray, "lines"], line: int) -> np.ndarray:
    """Return the values of one line."""
    return values[int(ends[line - 1]) if line else 0 : int(ends[line])]


def gather(
    values: np.ndarray, ends: Int[np.ndarray, "lines"], lines: Int[np.ndarray, "rows"]
) -> FlatSequences:
    """Return the values of some lines, one after another."""
    starts = np.where(lines > 0, ends[lines - 1], 0)
    lengths = ends[lines] - starts
    before = np.cumsum(lengths) - lengths
    places = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
    return FlatSequences(values[places], lengths)


def read_facts(path: Path) -> dict[str, Any]:
    """Read a small JSON file.

    Returns
    -------
    dict[str, Any]
        Its contents; nothing if it is missing or damaged. A file without a digest, as older
        versions wrote it, is taken as it is.
    """
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(facts, dict):
        return {}
    digest = facts.pop("digest", None)
    return facts if digest in (None, _digest(facts)) else {}


def write_facts(path: Path, facts: dict[str, Any]) -> None:
    """Write a small JSON file atomically, with a checksum of its contents."""
    write_file(path, json.dumps(facts | {"digest": _digest(facts)}, indent=1))


def _digest(facts: dict[str, Any]) -> str:
    return digest_of(json.dumps(facts).encode())
