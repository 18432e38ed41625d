"""The training log: one JSON line per event in a file, and a live panel on the terminal."""

import json
import math
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from io import TextIOBase
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dragoman.errors import OptionError
from dragoman.files import write_file

METRICS_FILE = "metrics.jsonl"
_BAR_WIDTH = 30


class Log:
    """The log of a run, open as a context manager.

    Parameters
    ----------
    folder : Path
        The run's folder.
    resumed_step : int
        Lines of later steps, which will be told again, are taken out.
    tensorboard : bool
        Whether to write TensorBoard events too.
    stream : TextIOBase | None
        Where a person watches; None: the standard error stream. A terminal gets a live display,
        anything else plain lines.
    may_end_sooner : bool
        Whether the run may end before the time that can be foreseen, as by ``--patience``.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resumed_step: int = 0,
        tensorboard: bool = False,
        stream: TextIOBase | None = None,
        may_end_sooner: bool = False,
    ) -> None:
        self._path = folder / METRICS_FILE
        self._ends = "ends by" if may_end_sooner else "ends about"
        self._latest: dict[str, dict[str, Any]] = {}
        self._best: dict[str, Any] | None = None
        for earlier in _forget_later(self._path, resumed_step):
            if _is_validation(earlier):
                self._note_validation(earlier)
        self._writer = _tensorboard_writer(folder) if tensorboard else None
        self._console = Console(
            file=stream or sys.stderr,  # type: ignore[arg-type]
            highlight=False,
            soft_wrap=True,
        )
        self._live: Live | None = None

    def __enter__(self) -> "Log":
        self._file = self._path.open("a", encoding="utf-8")
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._panel, console=self._console, refresh_per_second=4
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
        if self._writer is not None:
            self._writer.close()
        self._file.close()

    def event(self, kind: str, **facts: Any) -> None:  # noqa: ANN401
        """Write an event to the file, and show it on the terminal."""
        line = {"event": kind, "time": round(time.time(), 3)} | facts
        finite = {name: None if _is_endless(value) else value for name, value in line.items()}
        self._file.write(json.dumps(finite, ensure_ascii=False) + "\n")
        self._file.flush()
        if kind == "validation":
            self._note_validation(facts)
        elif kind == "update":
            self._latest[kind] = facts | {"time": line["time"]}
        elif kind in ("stop", "end") and "update" in self._latest:
            self._latest["update"] |= {"seconds_left": None}
        if self._writer is not None:
            for name, value in facts.items():
                if isinstance(value, int | float) and "step" in facts and name != "step":
                    self._writer.add_scalar(f"{kind}/{name}", value, facts["step"])
        if self._live is not None:
            self._live.refresh()
        elif kind == "update":
            self._console.print("  ".join(self._describe_update(facts)), markup=False)
        elif kind == "validation":
            lines = [f"validation: {_validation_line(facts)}", *_probe_lines(facts)]
            self._console.print("\n".join(lines), markup=False)

    def say(self, text: str) -> None:
        """Print a line on the terminal that is not part of the log file."""
        self._console.print(text, markup=False)

    def _note_validation(self, facts: dict[str, Any]) -> None:
        """Keep the last and the best validation for the live panel."""
        self._latest["validation"] = facts
        if facts.get("is_best"):
            self._best = facts

    def _describe_update(self, facts: dict[str, Any]) -> list[str]:
        """Format an update: step, loss, speed and the expected end."""
        share, left = facts.get("share_done"), facts.get("seconds_left")
        said = [] if share is None else [format_share(share)]
        said += [_update_line(facts)]
        if self._best is not None:
            said += [_best_line(self._best)]
        if left is not None:
            said += [self._describe_end(left, time.time())]
        return said

    def _describe_end(self, left: float, now: float) -> str:
        """Format the expected end of a run."""
        return f"{format_time(left)} left, {self._ends} {format_moment(now + left, now)}"

    def _panel(self) -> Group:
        """Render the live panel."""
        table = Table.grid(padding=(0, 2))
        update, valid, best = self._latest.get("update"), self._latest.get("validation"), self._best
        if update:
            if update.get("share_done") is not None:
                table.add_row("done", self._draw_bar(update, time.time()))
            table.add_row("training", _update_line(update))
        if valid:
            table.add_row("validation", _validation_line(valid))
        if best and best is not valid:
            table.add_row("", _best_line(best))
        for name, text in _probe_rows(valid or {}):
            style = "" if name == "translation" else "dim"
            table.add_row(Text(name, style="dim"), Text(text, style=style, overflow="fold"))
        return Group(table)

    def _draw_bar(self, update: dict[str, Any], now: float) -> Table:
        """Render the progress bar and the remaining time."""
        share, left = update["share_done"], update.get("seconds_left")
        end = ""
        if left is not None:
            end = self._describe_end(max(left - (now - update["time"]), 0.0), now)
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(1.0, share, width=_BAR_WIDTH, complete_style="green")
        row.add_row(bar, format_share(share), end)
        return row


class SilentLog:
    """The log of workers other than the first: it discards everything."""

    def __enter__(self) -> "SilentLog":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def event(self, kind: str, **facts: Any) -> None:  # noqa: ANN401
        """Discard an event."""

    def say(self, text: str) -> None:
        """Discard a line."""


def format_time(seconds: float) -> str:
    """Format a time span."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def format_share(share: float) -> str:
    """Format a share of a run as a percentage."""
    return f"{math.floor(100 * share + 1e-9)} %"


def format_moment(moment: float, now: float) -> str:
    """Format a time of day.

    Returns
    -------
    str
        In local time, as in “17:42”, “Tuesday 17:42” if that is another day, or “Tuesday 3 March
        17:42” if it is six days away or more.
    """
    then, today = datetime.fromtimestamp(moment), datetime.fromtimestamp(now)
    days = (then.date() - today.date()).days
    day = "" if not days else f"{then:%A} " if days < 6 else f"{then:%A} {then.day} {then:%B} "
    return f"{day}{then:%H:%M}"


def _is_endless(value: object) -> bool:
    """Whether a value is an infinity or NaN, which JSON cannot write."""
    return isinstance(value, float) and not math.isfinite(value)


def _is_validation(event: dict[str, Any]) -> bool:
    """Whether an event of an earlier log is a validation with all fields that are shown."""
    numbers = (event.get(name) for name in ("step", "loss", "perplexity", "bleu"))
    probes = event.get("probes", [])
    return (
        event.get("event") == "validation"
        and all(isinstance(each, int | float) for each in numbers)
        and isinstance(probes, list)
        and all(isinstance(each, list) and [*map(type, each)] == [str] * 3 for each in probes)
    )


def _update_line(facts: dict[str, Any]) -> str:
    return (
        f"step {facts['step']:,}  epoch {facts['epoch'] + 1}  loss {facts['loss']:.3f}  "
        f"{facts['tokens_per_second']:,.0f} tokens/s  rate {facts['learning_rate']:.2e}"
    )


def _validation_line(facts: dict[str, Any]) -> str:
    mark = "  (best so far)" if facts.get("is_best") else ""
    return (
        f"step {facts['step']:,}  loss {facts['loss']:.3f}  perplexity {facts['perplexity']:.2f}"
        f"  BLEU {facts['bleu']:.2f}{mark}"
    )


def _best_line(facts: dict[str, Any]) -> str:
    return f"best BLEU {facts['bleu']:.2f} at step {facts['step']:,}"


def _probe_rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """List the probe sentences of a validation as labelled lines."""
    names = ("source", "reference", "translation")
    return [row for probe in facts.get("probes", ()) for row in zip(names, probe, strict=True)]


def _probe_lines(facts: dict[str, Any]) -> Iterator[str]:
    return (f"  {name:11}  {text}" for name, text in _probe_rows(facts))


def _forget_later(path: Path, step: int) -> list[dict[str, Any]]:
    """Drop events after the resumed step, and a truncated last line, from an earlier log."""
    if not path.exists():
        return []
    kept, events = [], []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
            is_kept = event.get("step", 0) <= step
        except (ValueError, TypeError, AttributeError, RecursionError):  # damaged
            is_kept = False
        if is_kept:
            kept.append(line + "\n")
            events.append(event)
    write_file(path, "".join(kept))
    return events


def check_tensorboard() -> None:
    """Raise an error if TensorBoard is requested but not installed."""
    try:
        import tensorboardX  # noqa: F401
    except ImportError:
        raise OptionError(
            "--tensorboard needs the package tensorboardX; pip install “dragoman[tensorboard]”"
        ) from None


def _tensorboard_writer(folder: Path) -> Any:  # noqa: ANN401
    check_tensorboard()
    from tensorboardX import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))
