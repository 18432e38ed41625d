"""Store files with checksums of their blocks, verified when a block is first read."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from dragoman.data.batches import FlatSequences
from dragoman.data.store.mapped import gather, mapped, read_facts
from dragoman.errors import FolderError
from dragoman.files import digest_of
from dragoman.shapes import Int

BLOCK_BYTES = 1 << 20
VOCABULARY_FACTS = "digests.json"

Known = Mapping[str, Mapping[str, Any]]
"""Size and checksums of each file by name; files not listed are not checked."""


@contextmanager
def written_checked(path: Path, known: dict[str, Any]) -> Iterator[Callable[[bytes], None]]:
    """Write a file as a stream, and record its size and block checksums.

    Parameters
    ----------
    path : Path
        The file. One that is there is removed, not changed: another run may still map it.
    known : dict[str, Any]
        Gets an entry under the file's name when the file is complete and on the disk.
    """
    digest, digests, num_bytes = xxhash.xxh3_128(), [], 0
    with _written_to(path):
        path.unlink(missing_ok=True)
        file = path.open("wb")

    def write(contents: bytes) -> None:
        nonlocal digest, num_bytes
        with _written_to(path):
            file.write(contents)
        left = memoryview(contents)
        while left:
            part = left[: BLOCK_BYTES - num_bytes % BLOCK_BYTES]
            digest.update(part)
            num_bytes += len(part)
            left = left[len(part) :]
            if not num_bytes % BLOCK_BYTES:
                digests.append(digest.hexdigest())
                digest = xxhash.xxh3_128()

    try:
        yield write
        with _written_to(path):
            file.flush()
            os.fsync(file.fileno())
    finally:
        with _written_to(path):
            file.close()
    if num_bytes % BLOCK_BYTES:
        digests.append(digest.hexdigest())
    known[path.name] = {"bytes": num_bytes, "block_bytes": BLOCK_BYTES, "digests": digests}


class CheckedArray:
    """A memory-mapped array whose blocks are verified when they are first read.

    Parameters
    ----------
    path : Path
        The file.
    known : Known
        From `written_checked`.
    kind : type
        The numbers' type.

    Notes
    -----
    XXH3 reads some ten gigabytes a second, and a block is read once in a process: what is checked
    costs a small part of what it takes to bring it from the disk.
    """

    def __init__(self, path: Path, known: Known, kind: type = np.int64) -> None:
        self._path = path
        self._values = mapped(path, kind)
        facts = known.get(path.name)
        self._digests = facts["digests"] if facts else []
        self._block = facts["block_bytes"] // self._values.itemsize if facts else 1
        self._is_due = np.ones(len(self._digests), dtype=bool)
        self._num_due = len(self._digests)

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, places: slice) -> np.ndarray:
        if self._num_due:
            start, end, _ = places.indices(len(self))
            self._check(range(start // self._block, -(-end // self._block)))
        return self._values[places]

    def gather(
        self, ends: Int[np.ndarray, "lines"], lines: Int[np.ndarray, "rows"]
    ) -> FlatSequences:
        """Return the numbers of some lines, one after another."""
        if self._num_due:
            starts, stops = np.where(lines > 0, ends[lines - 1], 0), ends[lines]
            is_filled = stops > starts
            firsts = starts[is_filled] // self._block
            lasts = (stops[is_filled] - 1) // self._block
            size = len(self._is_due) + 1
            begun = np.bincount(firsts, minlength=size)
            ended = np.bincount(lasts + 1, minlength=size)
            # A block is read where more lines have begun than have ended before it.
            is_needed = np.cumsum(begun - ended)[:-1] > 0
            self._check(np.flatnonzero(is_needed & self._is_due).tolist())
        return gather(self._values, ends, lines)

    def _check(self, blocks: range | list[int]) -> None:
        """Verify blocks against their checksums, once each."""
        for number in blocks:
            if self._is_due[number]:
                block = self._values[number * self._block : (number + 1) * self._block]
                if xxhash.xxh3_128_hexdigest(block.data) != self._digests[number]:
                    where = f"block {number + 1} of {len(self._digests)} is not what was written"
                    raise _damage(self._path, where)
                self._is_due[number] = False
                self._num_due = int(self._is_due.sum())


def check_sizes(folder: Path, known: Known) -> None:
    """Raise an error if a file of a store is missing, truncated or too long."""
    for name, facts in known.items():
        try:
            num_bytes = (folder / name).stat().st_size
        except OSError:
            raise _damage(folder / name, "it is missing") from None
        if num_bytes != facts["bytes"]:
            raise _damage(
                folder / name, f"it has {num_bytes:,} bytes, but {facts['bytes']:,} were written"
            )


def check_vocabulary(folder: Path) -> None:
    """Raise an error if a vocabulary file of a store is damaged."""
    if not (folder / VOCABULARY_FACTS).exists():  # of an older version
        return
    digests = read_facts(folder / VOCABULARY_FACTS)
    for name, digest in digests.items() or [(VOCABULARY_FACTS, None)]:
        path = folder / name
        if not path.exists() or digest_of(path.read_bytes()) != digest:
            raise FolderError(f"{path}: is damaged; remove {folder}, which is then learnt again")


def check_store(folder: Path) -> list[str]:
    """Read a whole store, and list the damage."""
    found = []
    marker = folder / "store.json"
    if marker.exists() and not read_facts(marker):
        found.append(str(_damage(marker, "it is not what was written")))
    for name in ("text.json", "ids.json", "words.json"):
        path = folder / name
        facts = read_facts(path)
        if facts and "files" not in facts:
            found.append(f"{path}: has no digests, so that damage cannot be seen; prepare it again")
        elif not facts and path.exists():
            found.append(str(_damage(path, "it is not what was written")))
        elif not facts and name != "words.json":  # which only BPE-dropout needs
            found.append(f"{path}: is missing; the corpus is not prepared to the end")
        for file, known in facts.get("files", {}).items():
            found += _complaints(_read_whole, folder, {file: known})
    for path in sorted(folder.glob(f"[!.]*/{VOCABULARY_FACTS}")):
        found += _complaints(check_vocabulary, path.parent)
    return found


def _read_whole(folder: Path, known: Known) -> None:
    check_sizes(folder, known)
    for name in known:
        _ = CheckedArray(folder / name, known, np.uint8)[:]


def _complaints(check: Callable[..., None], *what: object) -> list[str]:
    try:
        check(*what)
    except (FolderError, OSError) as error:
        return [str(error)]
    return []


def _damage(path: Path, how: str) -> FolderError:
    folder = path.parent
    return FolderError(
        f"{path}: is damaged ({how}); get it again, or remove {folder} and have it prepared again "
        f"by “dragoman train” with --store {folder}"
    )


@contextmanager
def _written_to(path: Path) -> Iterator[None]:
    """Add the path to write errors, which the system's errors lack."""
    try:
        yield
    except OSError as error:
        raise FolderError(
            f"{path}: cannot be written ({error.strerror or error}); free some space or choose "
            "another place, then try again"
        ) from error
