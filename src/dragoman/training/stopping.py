"""Stopping criteria: limits of the run, and requests to stop by signals."""

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dragoman.training.budget.time_budget import has_budget, last_update, schedule_position
from dragoman.training.checkpoints.checkpoint import Progress
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.distributed import Workers

INTERRUPTED = "interrupted"
FEW_UPDATES, ENOUGH_UPDATES = 200, 1000
"""Updates below which even a small model is useless, and with which it is not."""


class Decision(NamedTuple):
    """What all workers do after an update, agreed among them."""

    limit: str
    is_save_due: bool
    num_parts: int


def decide(
    options: TrainingOptions,
    progress: Progress,
    workers: Workers,
    stop: Sequence[str] = (),
    *,
    seconds_unsaved: float = 0.0,
    num_parts: int = 0,
) -> Decision:
    """Agree with the other workers on stopping, saving and accumulation, by one collective.

    Parameters
    ----------
    options : TrainingOptions
        The limits, and how often to save.
    progress : Progress
        Where the run stands.
    workers : Workers
        Who trains. The first one's clock and limits count.
    stop : Sequence[str]
        Requests to stop, which count from whomever they come.
    seconds_unsaved : float
        Time since the last checkpoint.
    num_parts : int
        In how many parts this worker had to compute its share: the most that one needs, all take.
    """
    limit = limit_reached(options, progress) if workers.is_first else ""
    is_late = workers.is_first and seconds_unsaved > 60 * options.save_minutes
    is_stopped, is_over, is_save_due, num_parts = workers.all_reduce_max(
        bool(stop), bool(limit), is_late, num_parts
    )
    if is_over and not limit:
        limit = "the first worker reached a limit"
    return Decision(INTERRUPTED if is_stopped else limit, bool(is_save_due), num_parts)


def limit_reached(options: TrainingOptions, progress: Progress) -> str:
    """Return the limit that is reached, if any."""
    end = last_update(options, progress)
    if end is not None and progress.step >= end:
        return f"{end:,} updates done"
    if options.max_epochs is not None and progress.epoch >= options.max_epochs:
        return f"{options.max_epochs} passes over the corpus done"
    is_free = options.max_minutes is not None and not has_budget(options)
    if is_free and progress.seconds >= 60 * options.max_minutes:  # type: ignore[operator]
        return f"{options.max_minutes:g} minutes passed"
    if options.patience is not None and progress.num_worse >= options.patience:
        return f"no better validation since step {progress.best_step:,}"
    return ""


def share_done(options: TrainingOptions, progress: Progress) -> float | None:
    """Compute the share of a run that is done, by its nearest limit.

    Notes
    -----
    `patience` cannot be predicted. Neither can `max_epochs` before the first pass tells how many
    updates a pass has: until then None is returned, since any other limit may be the farther one.
    """
    shares = []
    if options.max_steps is not None:
        shares.append(schedule_position(options, progress) / options.max_steps)
    if options.max_minutes is not None and not has_budget(options):
        shares.append(progress.seconds / (60 * options.max_minutes))
    if options.max_epochs is not None:
        if not progress.epoch:
            return None
        pass_updates = (progress.step - progress.epoch_updates) / progress.epoch
        passes = progress.epoch + min(progress.epoch_updates / max(pass_updates, 1), 1)
        shares.append(passes / options.max_epochs)
    return min(max(shares), 1.0) if shares else None


def describe_short_run(options: TrainingOptions, progress: Progress) -> str:
    """Say that a time limit left too few updates to learn from, and how long would do; else “”."""
    if options.max_minutes is None or not 0 < progress.step < FEW_UPDATES:
        return ""
    if not progress.planned_seconds and progress.seconds < 60 * options.max_minutes:
        return ""  # another limit ended the run
    other = max(progress.wall_seconds - progress.seconds, 0.0)
    enough = other + progress.seconds / progress.step * ENOUGH_UPDATES
    minutes = max(math.ceil(enough / 60), math.ceil(2 * options.max_minutes))
    return (
        f"only {progress.step:,} updates fitted into {options.max_minutes:g} minutes, {other:.0f} "
        "seconds of which went to preparing, compiling and validating: the model has hardly learnt "
        f"anything; give --max-minutes {minutes} or more"
    )


class EndEstimator:
    """The rate of progress since the run was last started, validations included.

    Parameters
    ----------
    clock : Callable[[], float]
        Tells seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._first: tuple[float, float] | None = None

    def estimate(
        self, options: TrainingOptions, progress: Progress
    ) -> tuple[float | None, float | None]:
        """Estimate the share of the run that is done, and the seconds left.

        Returns
        -------
        tuple[float | None, float | None]
            The share that is done, and the seconds left by the clock on the wall; None for what
            cannot be foreseen.

        Notes
        -----
        The first call begins to measure, so that neither what is compiled for the first updates
        nor the speed of the machine before a resumption counts. That call itself can only go by
        the time that training took so far.
        """
        share, now = share_done(options, progress), self._clock()
        if not share:
            return share, None
        if self._first is None or share < self._first[1]:
            self._first = (now, share)
        began, before = self._first
        if share > before:
            return share, (now - began) * (1 - share) / (share - before)
        return share, progress.seconds * (1 - share) / share


@contextmanager
def terminable() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that temporary files are cleaned up."""

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread: the caller handles signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def stop_requests() -> Iterator[list[str]]:
    """Record Ctrl-C and SIGTERM instead of exiting; a second Ctrl-C exits."""
    requests: list[str] = []

    def note(number: int, _frame: object) -> None:
        requests.append(INTERRUPTED)
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    except ValueError:  # not in the main thread: the caller handles signals
        pass
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
