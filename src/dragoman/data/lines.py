"""Read lines of a file or pipe ahead in a thread, in blocks, with invalid bytes replaced."""

import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from io import BufferedIOBase
from os import fstat
from pathlib import Path

from dragoman.data.corpus import OPENERS, read_raw_lines
from dragoman.errors import DataError

BLOCK_BYTES = 1 << 21
# Python's overhead per line: an endless stream of empty lines takes memory too.
LINE_BYTES = 64
STANDARD_INPUT = "standard input"


class LineReader:
    r"""Reads lines in a thread, a bounded number of bytes ahead.

    Parameters
    ----------
    lines : Iterable[bytes]
        The lines with their ends; read in the thread.
    place : str
        What to call them in messages.
    num_bytes : int | None
        Total number of bytes; None if unknown.
    is_steady : bool
        Whether all lines are there for the taking, as in a file: then every block is full but the
        last. Otherwise a block ends where no further line is available yet.

    Attributes
    ----------
    num_taken : int
        Lines taken so far.

    Notes
    -----
    Only “\n” ends a line. Memory is that of two blocks, or of the longest line.
    """

    def __init__(
        self,
        lines: Iterable[bytes],
        *,
        place: str,
        num_bytes: int | None = None,
        is_steady: bool = True,
    ) -> None:
        self.place = place
        self.num_bytes = num_bytes
        self.is_steady = is_steady
        self.num_taken = 0
        self._waiting: deque[bytes] = deque()
        self._waiting_cost = 0
        self._is_over = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def take(self, num_lines: int) -> list[bytes]:
        """Take the next block of lines.

        Returns
        -------
        list[bytes]
            The lines with their ends; none at the end. What went wrong in reading is raised once
            the lines before it are taken.

        Notes
        -----
        How many lines a block of a steady reader has follows from the lines alone.
        """
        block: list[bytes] = []
        size = 0
        while len(block) < num_lines and size < BLOCK_BYTES:
            with self._changed:
                while not self._waiting and not self._is_over and (self.is_steady or not block):
                    self._changed.wait()
                if not self._waiting:
                    break
                while self._waiting and len(block) < num_lines and size < BLOCK_BYTES:
                    block.append(self._waiting.popleft())
                    size += _cost(block[-1])
                    self._waiting_cost -= _cost(block[-1])
                self._changed.notify_all()
        if not block and self._error is not None:
            raise self._error
        self.num_taken += len(block)
        return block

    def _read(self, lines: Iterable[bytes]) -> None:
        """Fill the queue of lines; runs in the thread."""
        number = 0
        try:
            for raw in lines:
                number += 1
                with self._changed:
                    while self._waiting_cost >= BLOCK_BYTES:
                        self._changed.wait()
                    self._waiting.append(raw)
                    self._waiting_cost += _cost(raw)
                    if len(self._waiting) == 1:
                        self._changed.notify_all()
        except DataError as error:
            self._error = error
        except (OSError, ValueError, AttributeError) as error:
            message = f"{self.place}, after line {number}: cannot be read ({error})"
            self._error = DataError(message)
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()


def open_lines(path: Path | None) -> LineReader:
    """Begin to read a file or standard input."""
    if path is None:
        return _open_standard_input()
    is_plain = path.is_file() and path.suffix not in OPENERS
    num_bytes = path.stat().st_size if is_plain else None
    return LineReader(read_raw_lines(path), place=str(path), num_bytes=num_bytes)


def decode_line(raw: bytes, place: str, number: int, warn: Callable[[str], None]) -> str:
    """Decode a line, replacing invalid bytes."""
    raw = raw.rstrip(b"\r\n")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        text = raw.decode("utf-8", errors="replace")
        count = text.count("\ufffd") - raw.count("\ufffd".encode())
        warn(
            f"{place}, line {number}: not UTF-8 (byte {raw[error.start]:#04x} at column "
            f"{error.start + 1}); “\ufffd” was put in {count:,} place{'s' if count > 1 else ''}"
        )
        return text


def _cost(raw: bytes) -> int:
    return len(raw) + LINE_BYTES


def _open_standard_input() -> LineReader:
    """Open standard input, unless there is none."""
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise DataError(f"{STANDARD_INPUT}: is closed; give a file or a pipe")
    try:
        facts = fstat(stream.fileno())
    except (OSError, AttributeError):  # a stream in memory
        return LineReader(stream, place=STANDARD_INPUT, is_steady=False)
    is_file = stat.S_ISREG(facts.st_mode)
    num_bytes = facts.st_size - stream.tell() if is_file else None
    reader = _own_reader(stream)
    return LineReader(reader, place=STANDARD_INPUT, num_bytes=num_bytes, is_steady=is_file)


def _own_reader(stream: BufferedIOBase) -> Iterable[bytes]:
    """Reopen the stream with a reader that the interpreter does not lock at exit."""
    return open(stream.fileno(), "rb", closefd=False)
