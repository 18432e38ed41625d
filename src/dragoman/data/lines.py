"""Lines of text in blocks: many at a time from a file, as they come from a person or a pipe."""

import queue
import sys
import threading
from collections.abc import Iterator
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

    def read() -> None:
        for raw in sys.stdin.buffer:
            waiting.put(raw)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    number = 0
    is_open = True
    while is_open:
        block = [waiting.get()]
        while len(block) < BLOCK_LINES and not waiting.empty():
            block.append(waiting.get())
        is_open = block[-1] is not None
        lines = []
        for raw in block if is_open else block[:-1]:
            number += 1
            lines.append(_decode(raw, number))
        if lines:
            yield lines


def _decode(raw: bytes | None, number: int) -> str:
    assert raw is not None
    try:
        return raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"standard input, line {number}: not UTF-8 (byte {error.object[error.start]:#04x} at "
            f"column {error.start + 1}); convert it, for example with iconv"
        ) from None
