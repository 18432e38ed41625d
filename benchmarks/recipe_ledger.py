"""The ledger of the study: one line of JSON a finished run, and one a comparison.

Lines are only ever added. The translations that comparisons need are kept beside the runs, packed,
outside the repository; a comparison that was made stays in the ledger without them.
"""

import fcntl
import json
import lzma
import os
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from dragoman.files import write_file, written_beside
from record import RESULTS

LEDGER = RESULTS / "recipes.jsonl"
BUNDLE = "recipes-translations.tar"
FINISHED, FAILED, NOT_AVAILABLE = "finished", "failed", "not available"

Line = dict[str, Any]


def read_ledger(path: Path) -> list[Line]:
    """Read a ledger.

    Parameters
    ----------
    path : Path
        The file; it need not be there.

    Returns
    -------
    list[dict[str, Any]]
        Its lines in order.
    """
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def append_lines(path: Path, lines: Iterable[Line]) -> int:
    """Add lines that are not there yet.

    Parameters
    ----------
    path : Path
        The ledger.
    lines : Iterable[dict[str, Any]]
        What to add.

    Returns
    -------
    int
        How many were new.

    Notes
    -----
    The file is locked, and all lines are written at once: whoever adds at the same time comes
    before or after.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = set(file.read().splitlines())
        written = (json.dumps(line, ensure_ascii=False, sort_keys=True) for line in lines)
        new = [line for line in dict.fromkeys(written) if line not in known]
        file.write("".join(f"{line}\n" for line in new))
        file.flush()
        os.fsync(file.fileno())
    return len(new)


def newest_runs(lines: Iterable[Line]) -> dict[tuple[str, str, int], Line]:
    """Find the newest run of each corpus, factor and seed.

    Parameters
    ----------
    lines : Iterable[dict[str, Any]]
        Of a ledger.

    Returns
    -------
    dict[tuple[str, str, int], dict[str, Any]]
        Runs by corpus, factor and seed; what finished is preferred to what did not.
    """
    found: dict[tuple[str, str, int], Line] = {}
    for line in lines:
        if line["kind"] != "run":
            continue
        key = (line["corpus"], line["factor"], line["seed"])
        before = found.get(key)
        if before and before["status"] == FINISHED and line["status"] == NOT_AVAILABLE:
            continue
        found[key] = line
    return found


def keep_translations(work: Path, digest: str, translations: dict[str, list[str]]) -> None:
    """Keep the translations of a run, packed.

    Parameters
    ----------
    work : Path
        The work folder.
    digest : str
        Of the run.
    translations : dict[str, list[str]]
        By the name of the set.
    """
    packed = lzma.compress(json.dumps(translations, ensure_ascii=False).encode())
    path = _translations_path(work, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, packed)


def find_translations(work: Path, digest: str) -> dict[str, list[str]] | None:
    """Find the translations of a run.

    Parameters
    ----------
    work : Path
        The work folder.
    digest : str
        Of the run.

    Returns
    -------
    dict[str, list[str]] | None
        By the name of the set; None: they are not here.
    """
    path = _translations_path(work, digest)
    return json.loads(lzma.decompress(path.read_bytes())) if path.exists() else None


def bundle_translations(work: Path, digests: Iterable[str], folder: Path) -> None:
    """Put translations into one file, to be carried to another machine.

    Parameters
    ----------
    work : Path
        The work folder.
    digests : Iterable[str]
        Of the runs.
    folder : Path
        Where the file goes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with written_beside(folder / BUNDLE) as beside, tarfile.open(beside, "w") as bundle:
        for digest in digests:
            path = _translations_path(work, digest)
            if path.exists():
                bundle.add(path, arcname=path.name)


def merge_file(path: Path, ledger: Path, work: Path) -> str:
    """Take in what another machine found.

    Parameters
    ----------
    path : Path
        A ledger, or a bundle of translations.
    ledger : Path
        The ledger to add to.
    work : Path
        The work folder to add to.

    Returns
    -------
    str
        What was done, for a person.
    """
    if path.suffix == ".jsonl":
        lines = read_ledger(path)
        return f"{path}: {append_lines(ledger, lines)} new of {len(lines)} lines"
    count = 0
    with tarfile.open(path) as bundle:
        for member in bundle.getmembers():
            contents = bundle.extractfile(member)
            name = Path(member.name).name
            if contents is not None and name.endswith(".json.xz"):
                target = _translations_path(work, name.removesuffix(".json.xz"))
                target.parent.mkdir(parents=True, exist_ok=True)
                write_file(target, contents.read())
                count += 1
    return f"{path}: translations of {count} runs"


def _translations_path(work: Path, digest: str) -> Path:
    return work / "translations" / f"{digest}.json.xz"
