"""Read parallel text files as clean sentence pairs, and report what was dropped and why."""

import gzip
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import IO, Any

from dragoman.data.tmx import is_tmx, read_tmx
from dragoman.errors import DataError
from dragoman.text.normalise import normalise

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
UNPACKING_ERRORS = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)
RAW_LINES = 8192


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """The files of a parallel corpus.

    Parameters
    ----------
    source : tuple[Path, ...]
        Files of source sentences, one a line.
    target : tuple[Path, ...]
        Files of their translations, in the same order.
    tsv : tuple[Path, ...]
        Files of both, a tab between.
    tmx : tuple[Path, ...]
        Translation memories.
    general : tuple[Path, ...]
        Files of both whose pairs are never set aside for validation: a tab between, or, if they
        are called so, translation memories.
    languages : tuple[str, str] | None
        Codes of source and target, to find them in translation memories.
    """

    source: tuple[Path, ...] = ()
    target: tuple[Path, ...] = ()
    tsv: tuple[Path, ...] = ()
    tmx: tuple[Path, ...] = ()
    general: tuple[Path, ...] = ()
    languages: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(
                f"{len(self.source)} source files but {len(self.target)} target files; "
                "give as many of one as of the other, in the same order"
            )

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file."""
        return (*self.source, *self.target, *self.tsv, *self.tmx, *self.general)

    @property
    def groups(self) -> tuple[tuple[Path, ...], ...]:
        """The corpora: each source file with its target file, then each file of both."""
        joint = (*self.tsv, *self.tmx, *self.general)
        return (*zip(self.source, self.target, strict=True), *((path,) for path in joint))

    @property
    def num_own(self) -> int:
        """How many of the corpora, the first ones, are not general."""
        return len(self.groups) - len(self.general)

    @cached_property
    def memories(self) -> frozenset[Path]:
        """The translation memories among the files."""
        return frozenset((*self.tmx, *filter(is_tmx, self.general)))

    def content_hash(self) -> str:
        """Hash what the files hold, in order."""
        digest = hashlib.blake2b(digest_size=16)
        roles = [self.source, self.target, self.tsv]
        if self.tmx or self.general:  # else the hash is that of stores that are there already
            roles += [self.tmx, self.general]
            digest.update(f"{self.languages if self.memories else None};".encode())
        for role in roles:
            digest.update(f"{len(role)};".encode())
            for path in role:
                with _opened(path, compressed=False) as file:
                    digest.update(hashlib.file_digest(file, "blake2b").digest())  # type: ignore[arg-type]
        return digest.hexdigest()


@dataclass(kw_only=True)
class Report:
    """Counts of the pairs that were read and dropped."""

    read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int = 1) -> None:
        """Count dropped pairs."""
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    def add(self, other: "Report") -> None:
        """Add the counts of another report."""
        self.read += other.read
        for reason, count in other.dropped.items():
            self.drop(reason, count)

    @property
    def kept(self) -> int:
        """Pairs that remain."""
        return self.read - sum(self.dropped.values())

    def in_words(self) -> str:
        """Format the counts in words."""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.kept:,} of {self.read:,} pairs kept" + (
            f"; dropped: {reasons}" if reasons else ""
        )


@dataclass(frozen=True, kw_only=True)
class RawBlock:
    """A block of undecoded lines of a corpus.

    Parameters
    ----------
    paths : tuple[Path, ...]
        The source file and the target file, or one file of both.
    columns : tuple[bytes, ...]
        The lines of each, with their ends; equally many of each.
    first_line : int
        The number of the first, counted from 1.
    group : int
        Which of `CorpusFiles.groups` they are of.
    """

    paths: tuple[Path, ...]
    columns: tuple[bytes, ...]
    first_line: int
    group: int

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Decode the lines."""
        columns = [
            _decode_lines(raw, path, self.first_line)
            for path, raw in zip(self.paths, self.columns, strict=True)
        ]
        if len(columns) == 2:
            yield from zip(*columns, strict=True)
            return
        for number, line in enumerate(columns[0], start=self.first_line):
            parts = line.split("\t")
            if len(parts) != 2:
                raise DataError(
                    f"{self.paths[0]}, line {number}: {len(parts)} columns where there must be 2 "
                    "(source, tab, target)"
                )
            yield parts[0], parts[1]


def read_lines(path: Path) -> Iterator[str]:
    """Read the lines of a plain, .gz or .xz file."""
    for number, raw in enumerate(read_raw_lines(path), start=1):
        yield _decode_lines(raw, path, number)[0]


def read_raw_lines(path: Path) -> Iterator[bytes]:
    """Read the lines of a plain, .gz or .xz file as bytes."""
    number = 0
    try:
        with _opened(path) as file:
            for raw in file:
                yield raw
                number += 1
    except UNPACKING_ERRORS as error:
        raise DataError(
            f"{path}: damaged after line {number} ({error}); get the file again"
        ) from None


def read_blocks(files: CorpusFiles) -> Iterator[RawBlock]:
    """Read a corpus in blocks of lines, checking that its files have equally many."""
    for group, paths in enumerate(files.groups):
        if paths[0] in files.memories:
            yield from _read_memory_blocks(paths[0], files.languages, group)
            continue
        readers = [read_raw_lines(path) for path in paths]
        first_line = 1
        while True:
            blocks = [list(islice(reader, RAW_LINES)) for reader in readers]
            counts = [len(block) for block in blocks]
            if len(set(counts)) > 1:
                rests = [sum(1 for _ in reader) for reader in readers]
                ends = [first_line - 1 + sum(each) for each in zip(counts, rests, strict=True)]
                raise DataError(
                    f"unequal line counts: {paths[0]} has {ends[0]:,} lines, {paths[1]} has "
                    f"{ends[1]:,}; line n of one must translate line n of the other"
                )
            if not counts[0]:
                break
            columns = tuple(b"".join(block) for block in blocks)
            yield RawBlock(paths=paths, columns=columns, first_line=first_line, group=group)
            first_line += counts[0]


def _read_memory_blocks(
    path: Path, languages: tuple[str, str] | None, group: int
) -> Iterator[RawBlock]:
    """Read a translation memory in blocks of as many lines as segments."""
    if languages is None:
        raise DataError(
            f"{path}: holds several languages; give --source-language and --target-language, such "
            "as de and en"
        )
    first_line = 1
    try:
        with _opened(path) as file:
            pairs = read_tmx(file, path, languages)
            while block := list(islice(pairs, RAW_LINES)):
                columns = tuple(
                    b"".join(f"{segment}\n".encode() for segment in side)
                    for side in zip(*block, strict=True)
                )
                yield RawBlock(
                    paths=(path, path), columns=columns, first_line=first_line, group=group
                )
                first_line += len(block)
    except UNPACKING_ERRORS as error:
        raise DataError(
            f"{path}: damaged after {first_line - 1:,} segments ({error}); get the file again"
        ) from None


def read_pairs(files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """Read sentence pairs, checking that the files fit together."""
    for block in read_blocks(files):
        yield from block.pairs()


def clean_pairs(
    pairs: Iterable[tuple[str, str]], max_length_ratio: float | None, report: Report
) -> Iterator[tuple[str, str]]:
    """Normalise pairs, and drop those with an empty side or of too different lengths.

    Parameters
    ----------
    pairs : Iterable[tuple[str, str]]
        Source and target.
    max_length_ratio : float | None
        How many times as long as the other a side may be; None: however long.
    report : Report
        Takes note of what is dropped.

    Notes
    -----
    What takes a look at the whole corpus (repetitions) or at the subwords (length) happens later,
    in `dragoman.data.store.clean_text` and `dragoman.data.store.store`.
    """
    for raw_source, raw_target in pairs:
        report.read += 1
        source, target = normalise(raw_source), normalise(raw_target)
        if not source or not target:
            report.drop("with an empty side")
        elif max_length_ratio is not None and _are_uneven(
            len(source), len(target), max_length_ratio
        ):
            report.drop("of too different lengths")
        else:
            yield source, target


def read_aligned(paths: Sequence[Path], names: Sequence[str]) -> list[list[str]]:
    """Read several whole files that must have equally many lines."""
    columns = [list(read_lines(path)) for path in paths]
    counts = [len(each) for each in columns]
    if len(set(counts)) > 1:
        described = ", ".join(
            f"{name} {path}: {count:,} lines"
            for name, path, count in zip(names, paths, counts, strict=True)
        )
        raise DataError(f"unequal line counts ({described}); the files must be parallel")
    if counts and not counts[0]:
        raise DataError(f"{paths[0]}: empty; there is nothing to score")
    return columns


def _are_uneven(one: int, other: int, ratio: float) -> bool:
    """Whether the lengths differ by more than the ratio; a few characters are always allowed."""
    return max(one, other) > ratio * min(one, other) + 10


def _decode_lines(raw: bytes, path: Path, first_line: int) -> list[str]:
    """Decode lines, the last with an end or without."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        number = first_line + raw.count(b"\n", 0, error.start)
        column = error.start - raw.rfind(b"\n", 0, error.start)
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte {raw[error.start]:#04x} at column {column}); "
            "convert the file, for example with iconv"
        ) from None
    if first_line == 1:
        text = text.removeprefix("\ufeff")
    lines = text.removesuffix("\n").split("\n")
    return [line.rstrip("\r") for line in lines]


class _DamageTolerantReader(io.RawIOBase):
    """A compressed file that yields all data before the damage, and only then raises an error."""

    def __init__(self, file: gzip.GzipFile | lzma.LZMAFile) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401
        found = self._file.read1(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def _opened(path: Path, *, compressed: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacking it if asked and if its name says it is packed."""
    opener = OPENERS.get(path.suffix) if compressed else None
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name the files in it")
    try:
        # Buffered again, since compressed files yield each line by a Python call.
        file = (
            io.BufferedReader(_DamageTolerantReader(opener(path, "rb")), 1 << 20)
            if opener
            else path.open("rb")
        )
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    with file:
        yield file
