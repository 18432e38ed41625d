"""Process endless streams of lines in bounded windows, in order and in constant memory."""

import argparse
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOBase
from pathlib import Path
from typing import Protocol, runtime_checkable

from dragoman import __version__
from dragoman.data.lines import LineReader, decode_line
from dragoman.decoding.stream.progress import ProgressDisplay
from dragoman.decoding.stream.resumable_output import ResumableOutput
from dragoman.errors import OptionError
from dragoman.folder import RUN_FILE

# A window holds a few dozen batches, so that sorting it leaves little padding.
WINDOW_LINES = {"cpu": 4096, "mps": 8192, "cuda": 32_768}
FIRST_WINDOW_LINES = 8
GROWTH = 16
MODEL_FILES = (".safetensors", ".toml", ".model", ".json")
# A run's notes for itself, on which no translation depends.

Work = Callable[[list[str], int], Sequence[str]]


@runtime_checkable
class Output(Protocol):
    """Where the results of lines are written."""

    def limit(self, num_lines: int) -> int:
        """Limit the number of lines of the next window."""
        ...

    def add(self, raw: Sequence[bytes], records: Sequence[str]) -> None:
        """Write the results of the next lines."""
        ...

    def finish(self) -> None:
        """Finish the output after the last line."""
        ...


class PrintedOutput:
    """Writes results to a stream at once.

    Parameters
    ----------
    stream : TextIOBase | None
        Where to; None: standard output.
    """

    def __init__(self, stream: TextIOBase | None = None) -> None:
        if stream is None and sys.__stdout__ is None:
            raise OptionError("standard output: is closed; send it to a file or a pipe")
        self._stream = stream or sys.stdout

    def limit(self, num_lines: int) -> int:
        """Allow windows of any length."""
        return num_lines

    def add(self, raw: Sequence[bytes], records: Sequence[str]) -> None:
        """Write the results of some lines."""
        del raw
        self._stream.write("".join(f"{record}\n" for record in records))
        self._stream.flush()

    def finish(self) -> None:
        """Do nothing more."""


@contextmanager
def open_output(
    options: argparse.Namespace, reader: LineReader, display: ProgressDisplay
) -> Iterator[Output]:
    """Open the output of a command: standard output, or a file that an interrupted run resumes.

    Parameters
    ----------
    options : argparse.Namespace
        What the user said: `output` is the file to write, or None; `file` the one to read.
    reader : LineReader
        The input, which skips the lines whose results a file already has.
    display : ProgressDisplay
        Told where a resumed run continues.
    """
    if options.output is None:
        yield PrintedOutput()
        return
    check_apart(options.output, options.file)
    reader.is_steady = True  # nobody sees a line before the last
    with ResumableOutput(options.output, identity_of(options, ("output", "file"))) as output:
        output.skip(reader)
        if output.num_done:
            display.say(f"{options.output}: going on after {output.num_done:,} lines")
        yield output


def run_stream(
    reader: LineReader, work: Work, output: Output, display: ProgressDisplay, max_lines: int
) -> None:
    """Process lines window by window.

    Parameters
    ----------
    reader : LineReader
        The lines.
    work : Callable[[list[str], int], Sequence[str]]
        Given some lines and the number of the first, counted from 1, returns what to write for
        them.
    output : Output
        Where to write it.
    display : ProgressDisplay
        Takes warnings, and how far the work is.
    max_lines : int
        The most lines of a window.

    Notes
    -----
    The reader runs ahead in its own thread, so reading takes no time from the work. The windows of
    a steady reader follow from the lines alone, unless the output wants shorter ones because they
    take long: a run that goes on after an interruption makes the same windows, hence the same
    batches and the same results to the last bit.
    """
    while True:
        size = window_lines(reader.num_taken, max_lines) if reader.is_steady else max_lines
        raw = reader.take(output.limit(size))
        if not raw:
            break
        first = reader.num_taken - len(raw) + 1
        lines = [
            decode_line(each, reader.place, number, display.warn)
            for number, each in enumerate(raw, start=first)
        ]
        output.add(raw, work(lines, first))
        num_words = sum(len(line.split()) for line in lines)
        display.advance(len(raw), sum(map(len, raw)), num_words)
    output.finish()


def window_lines(num_before: int, most: int) -> int:
    """Choose the number of lines of the next window.

    Returns
    -------
    int
        Small at first, so that the first results come soon and it is known how long they take, then
        ever more.
    """
    return min(most, max(FIRST_WINDOW_LINES, GROWTH * num_before))


def identity_of(options: argparse.Namespace, unimportant: Iterable[str]) -> dict[str, str]:
    """Describe all options on which results depend, input apart.

    Returns
    -------
    dict[str, str]
        For each option its value; for files and model folders a hash of what they hold.
    """
    identity = {"version": __version__}
    for name, value in vars(options).items():
        if name in ("run", "parser", *unimportant) or value is None:
            continue
        paths = value if isinstance(value, list | tuple) else [value]
        if paths and all(isinstance(path, Path) for path in paths):
            identity[name] = " ".join(f"{path.name} ({_hash(path)})" for path in paths)
        else:
            identity[name] = str(value)
    return identity


def check_apart(output: Path, source: Path | None) -> None:
    """Refuse to write over the input."""
    try:
        read = os.fstat(0) if source is None else source.stat()
        is_same = os.path.samestat(output.stat(), read)
    except (OSError, ValueError):
        return
    if is_same:
        raise OptionError(f"--output {output} is also the input; name another file")


def _hash(path: Path) -> str:
    """Hash a file, or the model files of a folder."""
    digest = hashlib.blake2b(digest_size=8)
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    for each in files:
        matters = each.suffix in MODEL_FILES and each.name != RUN_FILE
        if each.is_file() and (each == path or matters):
            digest.update(each.name.encode())
            with each.open("rb") as file:
                digest.update(hashlib.file_digest(file, "blake2b").digest())
    return digest.hexdigest()
