"""Text files to clean sentence pairs, with a report of what was dropped and why."""

import gzip
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from dragoman.data.options import CorpusOptions
from dragoman.errors import DataError
from dragoman.text.normalise import normalise

OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


@dataclass(frozen=True, kw_only=True)
class CorpusFiles:
    """Where sentence pairs are.

    Parameters
    ----------
    source : tuple[Path, ...]
        Files of source sentences, one a line.
    target : tuple[Path, ...]
        Files of their translations, in the same order.
    tsv : tuple[Path, ...]
        Files of both, a tab between.
    """

    source: tuple[Path, ...] = ()
    target: tuple[Path, ...] = ()
    tsv: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise DataError(
                f"{len(self.source)} source files but {len(self.target)} target files; "
                "give as many of one as of the other, in the same order"
            )

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file."""
        return (*self.source, *self.target, *self.tsv)

    def content_hash(self) -> str:
        """Hash what the files hold, in order.

        Returns
        -------
        str
            Differs when anything in any file differs.
        """
        digest = hashlib.blake2b(digest_size=16)
        for role in (self.source, self.target, self.tsv):
            digest.update(f"{len(role)};".encode())
            for path in role:
                with _opened(path, compressed=False) as file:
                    digest.update(hashlib.file_digest(file, "blake2b").digest())  # type: ignore[arg-type]
        return digest.hexdigest()


@dataclass(kw_only=True)
class Report:
    """What became of the pairs that were read."""

    read: int = 0
    dropped: dict[str, int] = field(default_factory=dict)

    def drop(self, reason: str, count: int = 1) -> None:
        """Note that pairs were dropped.

        Parameters
        ----------
        reason : str
            Why, as in “12 …”.
        count : int
            How many.
        """
        if count:
            self.dropped[reason] = self.dropped.get(reason, 0) + count

    @property
    def kept(self) -> int:
        """Pairs that remain."""
        return self.read - sum(self.dropped.values())

    def in_words(self) -> str:
        """Say it to a person.

        Returns
        -------
        str
            One line.
        """
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items())
        return f"{self.kept:,} of {self.read:,} pairs kept" + (
            f"; dropped: {reasons}" if reasons else ""
        )


def read_lines(path: Path) -> Iterator[str]:
    """Read the lines of a plain, .gz or .xz file.

    Parameters
    ----------
    path : Path
        The file.

    Yields
    ------
    str
        One line, without its end.
    """
    number = 0
    try:
        with _opened(path) as file:
            for number, raw in enumerate(file, start=1):
                line = raw.decode("utf-8").rstrip("\r\n")
                yield line.removeprefix("\ufeff") if number == 1 else line
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte {error.object[error.start]:#04x} at "
            f"column {error.start + 1}); convert the file, for example with iconv"
        ) from None
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise DataError(
            f"{path}: damaged after line {number} ({error}); get the file again"
        ) from None


def read_pairs(files: CorpusFiles) -> Iterator[tuple[str, str]]:
    """Read sentence pairs, checking that the files fit together.

    Parameters
    ----------
    files : CorpusFiles
        Where they are.

    Yields
    ------
    tuple[str, str]
        Source and target, as they stand in the files.
    """
    for source_path, target_path in zip(files.source, files.target, strict=True):
        yield from _zip_lines(source_path, target_path)
    for path in files.tsv:
        for number, line in enumerate(read_lines(path), start=1):
            columns = line.split("\t")
            if len(columns) != 2:
                raise DataError(
                    f"{path}, line {number}: {len(columns)} columns where there must be 2 "
                    "(source, tab, target)"
                )
            yield columns[0], columns[1]


def clean_pairs(
    files: CorpusFiles, options: CorpusOptions, report: Report
) -> Iterator[tuple[str, str]]:
    """Read pairs, normalise them and drop those that one look shows to be useless.

    Parameters
    ----------
    files : CorpusFiles
        Where they are.
    options : CorpusOptions
        What is dropped.
    report : Report
        Takes note of it.

    Yields
    ------
    tuple[str, str]
        A clean pair.

    Notes
    -----
    What takes a look at the whole corpus (repetitions) or at the subwords (length) happens later,
    in `dragoman.data.store`.
    """
    ratio = options.max_length_ratio
    for raw_source, raw_target in read_pairs(files):
        report.read += 1
        source, target = normalise(raw_source), normalise(raw_target)
        if not source or not target:
            report.drop("with an empty side")
        elif ratio is not None and _are_uneven(len(source), len(target), ratio):
            report.drop("of too different lengths")
        else:
            yield source, target


def read_aligned(paths: Sequence[Path], names: Sequence[str]) -> list[list[str]]:
    """Read several whole files that must have equally many lines.

    Parameters
    ----------
    paths : Sequence[Path]
        The files.
    names : Sequence[str]
        What to call each in an error message.

    Returns
    -------
    list[list[str]]
        The lines of each.
    """
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
    """Whether one length is far over the other; a few characters' difference never is."""
    return max(one, other) > ratio * min(one, other) + 10


def _zip_lines(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    """Read two files side by side; if one ends first, say how many lines each has."""
    source_lines, target_lines = read_lines(source_path), read_lines(target_path)
    both = 0
    for source in source_lines:
        target = next(target_lines, None)
        if target is None:
            counts = (both + 1 + sum(1 for _ in source_lines), both)
            raise _unequal(source_path, target_path, *counts)
        both += 1
        yield source, target
    rest = sum(1 for _ in target_lines)
    if rest:
        raise _unequal(source_path, target_path, both, both + rest)


def _unequal(source_path: Path, target_path: Path, sources: int, targets: int) -> DataError:
    return DataError(
        f"unequal line counts: {source_path} has {sources:,} lines, {target_path} has "
        f"{targets:,}; line n of one must translate line n of the other"
    )


@contextmanager
def _opened(path: Path, *, compressed: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, unpacking it if asked and if its name says it is packed."""
    opener = OPENERS.get(path.suffix) if compressed else None
    if path.is_dir():
        raise DataError(f"{path}: is a folder; name the files in it")
    try:
        file = opener(path, "rb") if opener else path.open("rb")
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    with file:
        yield file
