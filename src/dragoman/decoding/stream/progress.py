"""Progress and warnings on the terminal."""

import sys
import time
from contextlib import suppress
from io import TextIOBase
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

MOST_WARNINGS = 100


class ProgressDisplay:
    """Prints warnings, and on a terminal the progress.

    Parameters
    ----------
    stream : TextIOBase | None
        Where to; None: the standard error stream.
    num_bytes : int | None
        Bytes of the whole input; None: nobody knows.
    shows_progress : bool
        Whether to show how far the work is if the stream is a terminal.

    Notes
    -----
    After a hundred warnings the others are counted, and the count is told at the end. A terminal
    is told the speed in words at the end of an input of known size: what somebody types has none.
    What cannot be written is lost: no result depends on it.
    """

    def __init__(
        self,
        stream: TextIOBase | None = None,
        *,
        num_bytes: int | None = None,
        shows_progress: bool = True,
    ) -> None:
        self._console = Console(
            file=stream or sys.stderr,  # type: ignore[arg-type]
            highlight=False,
            soft_wrap=True,
        )
        self._num_lines = 0
        self._num_words = 0
        self._num_warnings = 0
        self._tells_speed = num_bytes is not None and self._console.is_terminal
        self._began = time.monotonic()
        self._progress: Progress | None = None
        if shows_progress and self._console.is_terminal:
            columns = [TextColumn("{task.fields[lines]:,} lines")]
            columns += [TextColumn("{task.fields[speed]:,.0f} a second")]
            known = [BarColumn(), TextColumn("{task.percentage:.0f} %"), TimeRemainingColumn()]
            self._progress = Progress(
                *columns, *(known if num_bytes else []), console=self._console, transient=True,
                redirect_stdout=False,  # the results, which go elsewhere than the progress
            )  # fmt: skip
            self._task = self._progress.add_task("", total=num_bytes, lines=0, speed=0.0)

    def __enter__(self) -> "ProgressDisplay":
        self._began = time.monotonic()
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()
        untold = self._num_warnings - MOST_WARNINGS
        if untold > 0:
            self.say(f"{untold:,} more warnings")
        if self._tells_speed and self._num_words and value is None:
            seconds = time.monotonic() - self._began
            self.say(
                f"{self._num_words:,} words in {seconds:.2f} s, "
                f"{self._num_words / max(seconds, 1e-3):,.0f} words a second"
            )

    def say(self, text: str) -> None:
        """Print a message."""
        with suppress(OSError):
            self._console.print(Text(f"dragoman: {text}"))

    def warn(self, text: str) -> None:
        """Print a warning, up to a hundred of them."""
        self._num_warnings += 1
        if self._num_warnings <= MOST_WARNINGS:
            self.say(f"warning: {text}")

    def advance(self, num_lines: int, num_bytes: int, num_words: int = 0) -> None:
        """Count lines that are done, and the words in them."""
        self._num_lines += num_lines
        self._num_words += num_words
        if self._progress is not None:
            seconds = self._progress.tasks[0].elapsed or 1.0
            speed = self._num_lines / seconds
            self._progress.update(
                self._task, advance=num_bytes, lines=self._num_lines, speed=speed, refresh=True
            )
