"""An output file that an interrupted run can resume."""

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from dragoman.data.lines import LineReader
from dragoman.errors import DataError, DragomanError, FolderError, OptionError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where two runs at once are not noticed
    flock = None  # type: ignore[assignment]

FORMAT = 1
OPENING = b'{"format": '
SKIPPED_LINES = 65_536
BLOCK_SECONDS = 10.0
"""Of work that is lost at most, or about so many, when a run is killed."""


class ResumableOutput:
    """A file that grows block by block and survives being killed at any moment.

    Parameters
    ----------
    path : Path
        Where the file shall be in the end.
    identity : Mapping[str, str]
        All on which the output depends besides the input; a run goes on only with the same.

    Attributes
    ----------
    num_done : int
        Lines of the input whose output is there.

    Notes
    -----
    The output grows in ``FILE.partial``. After each block it is flushed to the disk, and then a
    line is added to ``FILE.journal``: how many lines of the input are done, how many bytes they
    have become, a hash of those lines, and how long a line of the block took. Whatever lies beyond
    the last whole line of the journal is cut off and made again. When all is done the partial file
    is moved into place, over a file that may be there, and the journal removed.
    """

    def __init__(self, path: Path, identity: Mapping[str, str]) -> None:
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise OptionError(f"--output {path}: is not a plain file; name one, or use “>”")
        self._path = path
        self._partial = path.with_name(f"{path.name}.partial")
        self._journal = path.with_name(f"{path.name}.journal")
        self._identity = dict(identity)
        self._digest = hashlib.blake2b(digest_size=16)
        self._wanted_digest = self._digest.hexdigest()
        self.num_done = 0
        self._pace = 0.0  # seconds a line; not known yet

    def __enter__(self) -> "ResumableOutput":
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._records = _open_locked(self._journal)
            self._begin()
        except OSError as error:
            self._close()
            raise FolderError(
                f"{error.filename or self._path}: cannot be written ({error.strerror}); choose "
                "another place for --output"
            ) from None
        except DragomanError:
            self._close()
            raise
        self._since = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and not self.num_done:
            self._partial.unlink(missing_ok=True)
            self._journal.unlink(missing_ok=True)
        self._close()

    def skip(self, reader: LineReader) -> None:
        """Skip input lines that are done, checking that they have not changed."""
        while reader.num_taken < self.num_done:
            raw = reader.take(min(SKIPPED_LINES, self.num_done - reader.num_taken))
            if not raw:
                break
            self._digest.update(b"".join(raw))
        if self._digest.hexdigest() != self._wanted_digest:
            raise DataError(
                f"{self._journal}: {self.num_done:,} lines are done, but {reader.place} does not "
                f"begin with them; give the same input, or {self._begin_afresh}"
            )
        self._since = time.monotonic()

    def limit(self, num_lines: int) -> int:
        """Limit the next window, so that its results are on disk soon."""
        if self._pace * num_lines <= BLOCK_SECONDS:
            return num_lines
        return max(1, int(BLOCK_SECONDS / self._pace))

    def add(self, raw: Sequence[bytes], records: Sequence[str]) -> None:
        """Append the results of some lines and commit them to the journal."""
        self._digest.update(b"".join(raw))
        num_done = self.num_done + len(raw)
        self._pace = (time.monotonic() - self._since) / len(raw)
        with self._named_place():
            self._file.write("".join(f"{record}\n" for record in records).encode())
            _flush(self._file)
            self._note(
                lines=num_done,
                bytes=self._file.tell(),
                digest=self._digest.hexdigest(),
                pace=self._pace,
            )
        self.num_done = num_done
        self._since = time.monotonic()

    def finish(self) -> None:
        """Move the file into place."""
        with self._named_place():
            self._file.close()
            self._partial.replace(self._path)
            _flush_folder(self._path.parent)
            self._journal.unlink()

    @contextmanager
    def _named_place(self) -> Iterator[None]:
        """Say where it was that something could not be written."""
        try:
            yield
        except OSError as error:
            raise FolderError(
                f"{self._path}: cannot be written ({error.strerror}); free some space, then give "
                f"the same command again, which goes on after {self.num_done:,} lines"
            ) from None

    def _close(self) -> None:
        for name in ("_file", "_records"):
            if hasattr(self, name):
                with suppress(OSError):  # of what could not be written before
                    getattr(self, name).close()

    @property
    def _begin_afresh(self) -> str:
        return f"delete {self._partial.name} and {self._journal.name} to begin afresh"

    def _begin(self) -> None:
        """Resume what an earlier run left, or start anew."""
        header, records = self._read_records()
        if header is None and self._partial.exists() and self._partial.stat().st_size:
            self._journal.unlink()
            raise FolderError(f"{self._partial}: is in the way; move it or choose another --output")
        if header is not None and records and self._partial.exists():
            self._check(header)
        else:  # nothing was done, or killed after the file was moved into place
            records = []
            self._records.truncate(0)
            self._note(format=FORMAT, identity=self._identity)
        nothing: dict[str, Any] = {"lines": 0, "bytes": 0, "digest": self._wanted_digest}
        last = records[-1] if records else nothing
        self._file = self._partial.open("ab")
        if self._file.tell() < last["bytes"]:
            raise FolderError(
                f"{self._partial}: shorter than {self._journal.name} says; {self._begin_afresh}"
            )
        self._file.truncate(last["bytes"])
        self._file.seek(0, os.SEEK_END)
        self.num_done, self._wanted_digest = last["lines"], last["digest"]
        # A run that is killed before its first block is done tries a shorter one each time.
        self._pace = 2 * last.get("pace", 0.0)
        if records:
            with self._named_place():
                self._note(**last | {"pace": self._pace})

    def _read_records(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
        """Read the journal, cutting off an incomplete last line."""
        self._records.seek(0)
        contents = self._records.read()
        is_own = contents.startswith(OPENING) or OPENING.startswith(contents)
        *lines, rest = contents.split(b"\n")
        try:
            header, *records = [json.loads(line) for line in lines] or [None]
        except (ValueError, RecursionError):
            is_own = False
        if not is_own or not _is_header(header) or not all(map(_is_record, records)):
            raise FolderError(
                f"{self._journal}: not a journal of this version of Dragoman; move it away, or "
                "choose another --output"
            )
        self._records.truncate(len(contents) - len(rest))
        return header, records

    def _check(self, header: Mapping[str, Any]) -> None:
        """Refuse to resume with another model or other options."""
        before = header["identity"]
        for name in sorted({*before, *self._identity}):
            old, new = before.get(name, "not given"), self._identity.get(name, "not given")
            if old != new:
                raise OptionError(
                    f"{self._journal}: begun with {name} {old}, now {new}; give the same command, "
                    f"or {self._begin_afresh}"
                )

    def _note(self, **record: object) -> None:
        """Append a line to the journal."""
        self._records.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
        _flush(self._records)


def _is_header(line: Any) -> bool:  # noqa: ANN401
    """Whether a journal's first line has this format version."""
    return line is None or (
        isinstance(line, dict)
        and line.get("format") == FORMAT
        and isinstance(line.get("identity"), dict)
    )


def _is_record(line: Any) -> bool:  # noqa: ANN401
    """Whether a journal line records finished lines."""
    return (
        isinstance(line, dict)
        and all(type(line.get(name)) is int and line[name] >= 0 for name in ("lines", "bytes"))
        and isinstance(line.get("digest"), str)
        and isinstance(line.get("pace", 0.0), float)
        and 0 <= line.get("pace", 0.0) < math.inf
    )


def _open_locked(path: Path) -> IO[bytes]:
    """Open a journal that no other process is writing, creating it if needed."""
    while True:
        file = path.open("a+b")
        if flock is None:
            return file
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except OSError:
            file.close()
            raise FolderError(f"{path}: another run is writing there; wait for its end") from None
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # removed by a run that ended between the two calls


def _flush(file: IO[bytes]) -> None:
    """Flush a file to disk."""
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
