"""What a run tells: one JSON line per event in a file, and the same to the person watching."""

import json
import math
import sys
import time
from io import TextIOBase
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dragoman.errors import OptionError
from dragoman.files import write_file

METRICS_FILE = "metrics.jsonl"


class Log:
    """The log of a run: a context in which events are told.

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
    """

    def __init__(
        self,
        folder: Path,
        *,
        resumed_step: int = 0,
        tensorboard: bool = False,
        stream: TextIOBase | None = None,
    ) -> None:
        self._path = folder / METRICS_FILE
        _forget_later(self._path, resumed_step)
        self._writer = _tensorboard_writer(folder) if tensorboard else None
        self._console = Console(
            file=stream or sys.stderr,  # type: ignore[arg-type]
            highlight=False,
            soft_wrap=True,
        )
        self._live: Live | None = None
        self._latest: dict[str, dict[str, Any]] = {}

    def __enter__(self) -> "Log":
        self._file = self._path.open("a", encoding="utf-8")
        if self._console.is_terminal:
            self._live = Live(console=self._console, refresh_per_second=4, transient=False)
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
        """Tell an event.

        Parameters
        ----------
        kind : str
            ``start``, ``update``, ``validation``, ``divergence``, ``memory``, ``stop`` or ``end``.
        **facts : Any
            What there is to say of it: strings, numbers, lists.
        """
        line = {"event": kind, "time": round(time.time(), 3)} | facts
        finite = {name: None if _is_endless(value) else value for name, value in line.items()}
        self._file.write(json.dumps(finite, ensure_ascii=False) + "\n")
        self._file.flush()
        self._latest[kind] = facts
        if self._writer is not None:
            for name, value in facts.items():
                if isinstance(value, int | float) and "step" in facts and name != "step":
                    self._writer.add_scalar(f"{kind}/{name}", value, facts["step"])
        if self._live is not None:
            self._live.update(self._panel())
        elif kind in _PLAIN:
            self._console.print(_PLAIN[kind](facts), markup=False)

    def say(self, text: str) -> None:
        """Tell a person something that is no event.

        Parameters
        ----------
        text : str
            One line.
        """
        self._console.print(text, markup=False)

    def _panel(self) -> Group:
        """Draw the live display."""
        table = Table.grid(padding=(0, 2))
        update, valid = self._latest.get("update"), self._latest.get("validation")
        if update:
            table.add_row("training", _update_line(update))
        if valid:
            table.add_row("validation", _validation_line(valid))
            for name, text in zip(
                ("source", "reference", "translation"), valid["sample"], strict=True
            ):
                table.add_row(Text(name, style="dim"), Text(text, overflow="fold"))
        return Group(table)


class SilentLog:
    """The log of a worker that is not the first: nobody is told anything."""

    def __enter__(self) -> "SilentLog":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def event(self, kind: str, **facts: Any) -> None:  # noqa: ANN401
        """Keep an event to itself.

        Parameters
        ----------
        kind : str
            As in `Log.event`.
        **facts : Any
            As in `Log.event`.
        """

    def say(self, text: str) -> None:
        """Keep a line to itself.

        Parameters
        ----------
        text : str
            The line.
        """


def format_time(seconds: float) -> str:
    """Say a time span to a person.

    Parameters
    ----------
    seconds : float
        How long.

    Returns
    -------
    str
        As in “1 h 05 min”, “3 min 20 s” or “12 s”.
    """
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def _is_endless(value: object) -> bool:
    """Whether a value is a number that JSON cannot write."""
    return isinstance(value, float) and not math.isfinite(value)


def _update_line(facts: dict[str, Any]) -> str:
    eta = facts.get("seconds_left")
    return (
        f"step {facts['step']:,}  epoch {facts['epoch'] + 1}  loss {facts['loss']:.3f}  "
        f"{facts['tokens_per_second']:,.0f} tokens/s  rate {facts['learning_rate']:.2e}"
        + (f"  {format_time(eta)} left" if eta is not None else "")
    )


def _validation_line(facts: dict[str, Any]) -> str:
    mark = "  (best so far)" if facts.get("is_best") else ""
    return (
        f"step {facts['step']:,}  loss {facts['loss']:.3f}  perplexity {facts['perplexity']:.2f}"
        f"  BLEU {facts['bleu']:.2f}{mark}"
    )


_PLAIN = {
    "update": _update_line,
    "validation": lambda facts: (
        f"validation: {_validation_line(facts)}\n  source       {facts['sample'][0]}\n"
        f"  reference    {facts['sample'][1]}\n  translation  {facts['sample'][2]}"
    ),
}


def _forget_later(path: Path, step: int) -> None:
    """Take lines of later steps, and a half-written last line, out of an earlier log."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            is_kept = json.loads(line).get("step", 0) <= step
        except (ValueError, TypeError, AttributeError, RecursionError):  # damaged
            is_kept = False
        if is_kept:
            kept.append(line + "\n")
    write_file(path, "".join(kept))


def check_tensorboard() -> None:
    """Complain if TensorBoard events are asked for and cannot be written."""
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
