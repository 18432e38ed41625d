"""Lines of text in blocks: many at a time from a file, as they come from a person or a pipe."""

import queue
import sys
import threading
from collections.abc import Iterator
from io import BufferedIOBase
from itertools import islice

from dragoman.errors import DataError

BLOCK_LINES = 2048


def blocks_of(lines: Iterator[str]) -> Iterator[list[str]]:
    """Read lines in blocks, so that memory stays the same however many there are.

    Parameters
    ----------
    lines : Iterator[str]
        The lines.

    Yields
    ------
    list[str]
        The next block.
    """
    while block := list(islice(lines, BLOCK_LINES)):
        yield block


def lines_of_stdin() -> Iterator[list[str]]:
    """Read standard input in blocks of what is there already.

    Yields
    ------
    list[str]
        At least one line, at most a full block: nobody waits for a line that has not been
        written yet.
    """
    waiting: queue.Queue[bytes | None] = queue.Queue(maxsize=2 * BLOCK_LINES)

    problems: list[str] = []

    def read() -> None:
        try:
            for raw in _own_reader(sys.stdin.buffer):  # type: ignore[arg-type]
                waiting.put(raw)
        except (OSError, ValueError, AttributeError) as error:
            problems.append(str(error))
        finally:
            waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    number = 0
    is_open = True
    while is_open:
        block = [waiting.get()]
        while len(block) < BLOCK_LINES and not waiting.empty():
            block.append(waiting.get())
        is_open = block[-1] is not None
        lines: list[str] = []
        for raw in block:
            if raw is None:
                break
            number += 1
            try:
                lines.append(raw.decode("utf-8").rstrip("\r\n"))
            except UnicodeDecodeError as error:
                if lines:
                    yield lines
                raise DataError(
                    f"standard input, line {number}: not UTF-8 (byte "
                    f"{error.object[error.start]:#04x} at column {error.start + 1}); convert it, "
                    "for example with iconv"
                ) from None
        if lines:
            yield lines
    if problems:
        raise DataError(f"standard input, after line {number}: cannot be read ({problems[0]})")


def _own_reader(stream: BufferedIOBase) -> BufferedIOBase:
    """Read the same bytes through a reader that the interpreter does not lock when it ends."""
    try:
        return open(stream.fileno(), "rb", closefd=False)
    except OSError:  # a stream in memory
        return stream
