"""The training loop, from top to bottom."""

import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor

from dragoman.data.batches import Batch, make_batch, plan_epoch
from dragoman.data.prefetch import prefetched
from dragoman.data.store import PairStore
from dragoman.errors import TrainingError
from dragoman.training.checkpoint import (
    Progress,
    Trained,
    list_checkpoints,
    restore_checkpoint,
    save_checkpoint,
)
from dragoman.training.log import Log
from dragoman.training.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.reward import RewardStep
from dragoman.training.schedule import learning_rate
from dragoman.training.validation import Validation, Validator

MAX_FALLBACKS = 3
DIVERGED_NATS = 2.0

BestWriter = Callable[[Progress, Validation], None]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """Everything the loop works with.

    Parameters
    ----------
    step : TrainingStep | RewardStep
        Model and loss.
    trained : Trained
        What training changes.
    pairs : PairStore
        The training corpus.
    validator : Validator
        Says how good the model is.
    options : TrainingOptions
        How to train.
    peak_learning_rate : float
        At the end of warm-up.
    checkpoints : Path
        Folder of the run's checkpoints.
    device : torch.device
        Where to train.
    pad_id : int
        The padding.
    """

    step: TrainingStep | RewardStep
    trained: Trained
    pairs: PairStore
    validator: Validator
    options: TrainingOptions
    peak_learning_rate: float
    checkpoints: Path
    device: torch.device
    pad_id: int


@dataclass
class Window:
    """What happened since the last line of the log."""

    loss: Tensor
    num_target_tokens: int = 0
    num_tokens: int = 0
    num_places: int = 0
    started: float = 0.0


class _DivergedError(Exception):
    """The loss is no number, or far over what it was."""


def train(loop: Loop, progress: Progress, log: Log, on_best: BestWriter) -> str:
    """Train until a limit is reached or somebody asks to stop.

    Parameters
    ----------
    loop : Loop
        What to work with.
    progress : Progress
        Where the run stands; kept up to date.
    log : Log
        Where to tell what happens.
    on_best : Callable[[Progress, Validation], None]
        Called when a validation is the best so far, with the model as it was validated.

    Returns
    -------
    str
        Why it stopped: the reached limit, or “interrupted”.
    """
    limit = _limit_reached(loop.options, progress)
    if limit:
        if progress.best_value is None:
            _validate(loop, progress, log, on_best)
        return limit
    with _stop_requests() as stop:
        while True:
            try:
                return _train_until_diverged(loop, progress, log, on_best, stop)
            except _DivergedError as error:
                _fall_back(loop, progress, log, str(error))


def _train_until_diverged(
    loop: Loop, progress: Progress, log: Log, on_best: BestWriter, stop: list[str]
) -> str:
    """Update, log, validate and save by turns; return why it stopped."""
    options = loop.options
    clock = saved = time.monotonic()
    window = _new_window(loop)
    loop.trained.model.train()
    while True:
        for batches in prefetched(_updates(loop, progress)):
            progress.step += 1
            progress.epoch_updates += 1
            _update(loop, batches, progress, window)
            now = time.monotonic()
            progress.seconds += now - clock
            clock = now
            limit = stop[0] if stop else _limit_reached(options, progress)
            is_validation = progress.step % options.validate_every == 0
            if progress.step % options.log_every == 0 or is_validation or limit:
                _report(loop, progress, window, log)
                window = _new_window(loop)
            if is_validation or (limit and not stop):
                _validate(loop, progress, log, on_best)
                limit = limit or _limit_reached(options, progress)
            if is_validation or limit or now - saved > 60 * options.save_minutes:
                _save(loop, progress)
                saved = time.monotonic()
            if limit:
                return limit
            window.started += time.monotonic() - clock
            clock = time.monotonic()
        progress.epoch += 1
        progress.epoch_updates = 0
        limit = _limit_reached(options, progress)
        if limit:
            if progress.step % options.validate_every:
                _report(loop, progress, window, log)
                _validate(loop, progress, log, on_best)
                _save(loop, progress)
            return limit


def _updates(loop: Loop, progress: Progress) -> Iterator[list[Batch]]:
    """Yield the rest of the present pass over the corpus: for each update its batches."""
    options = loop.options
    plan = plan_epoch(
        loop.pairs.source_lengths,
        loop.pairs.target_lengths,
        batch_tokens=max(1, options.batch_tokens // options.accumulate),
        seed=options.seed,
        epoch=progress.epoch,
    )
    rest = islice(plan, progress.epoch_updates * options.accumulate, None)
    while parts := list(islice(rest, options.accumulate)):
        yield [make_batch(*loop.pairs.ids(rows), loop.pad_id) for rows in parts]


def _update(loop: Loop, batches: list[Batch], progress: Progress, window: Window) -> None:
    """Change the weights once."""
    options, trained = loop.options, loop.trained
    num_target_tokens = sum(batch.num_target_tokens for batch in batches)
    for batch in batches:
        with precision_context(options, loop.device):
            loss = loop.step(batch.to(loop.device))
        (loss / num_target_tokens).backward()
        window.loss += loss.detach()
        window.num_tokens += batch.num_tokens
        window.num_places += batch.num_places
    window.num_target_tokens += num_target_tokens
    if options.clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(trained.model.parameters(), options.clip_norm)
    rate = _rate(loop, progress)
    for group in trained.optimiser.param_groups:
        group["lr"] = rate
    trained.optimiser.step()
    trained.optimiser.zero_grad(set_to_none=True)
    if trained.average is not None:
        trained.average.update(progress.step)


def _rate(loop: Loop, progress: Progress) -> float:
    rate = learning_rate(
        progress.step, peak=loop.peak_learning_rate, warmup_steps=loop.options.warmup_steps
    )
    return rate * progress.rate_scale


def _report(loop: Loop, progress: Progress, window: Window, log: Log) -> None:
    """Tell how training goes, and notice if it goes wrong."""
    if not window.num_target_tokens:
        return
    loss = window.loss.item() / window.num_target_tokens
    seconds = max(time.monotonic() - window.started, 1e-9)
    log.event(
        "update",
        step=progress.step,
        epoch=progress.epoch,
        loss=loss,
        tokens_per_second=window.num_tokens / seconds,
        learning_rate=_rate(loop, progress),
        padding_share=1 - window.num_tokens / window.num_places,
        seconds=progress.seconds,
        seconds_left=_seconds_left(loop.options, progress),
    )
    lowest = progress.lowest_loss
    if not math.isfinite(loss):
        raise _DivergedError(f"the loss became {loss}")
    if lowest is not None and loss > lowest + DIVERGED_NATS:
        raise _DivergedError(f"the loss rose from {lowest:.2f} to {loss:.2f}")
    progress.lowest_loss = loss if lowest is None else min(lowest, loss)


def _check_finite(loop: Loop) -> None:
    """Refuse to save weights that are no numbers."""
    norms = torch._foreach_norm(list(loop.trained.model.parameters()))
    if not torch.isfinite(torch.stack(norms).sum()):
        raise _DivergedError("a weight is no finite number")


def _validate(loop: Loop, progress: Progress, log: Log, on_best: BestWriter) -> None:
    """Say how good the model is, and keep it if it is the best so far."""
    _check_finite(loop)
    average = loop.trained.average
    with average.in_place() if average is not None else nullcontext():
        found = loop.validator.validate(progress.step // loop.options.validate_every)
        value = found.value(loop.options.best_by)
        is_best = progress.is_better(value, found.loss)
        if is_best:
            progress.best_value, progress.best_loss = value, found.loss
            progress.best_step, progress.num_worse = progress.step, 0
            on_best(progress, found)
        else:
            progress.num_worse += 1
    log.event("validation", step=progress.step, is_best=is_best, **asdict(found))


def _save(loop: Loop, progress: Progress) -> None:
    """Write a checkpoint, unless the weights are no numbers."""
    _check_finite(loop)
    save_checkpoint(
        loop.checkpoints,
        loop.trained,
        progress,
        validate_every=loop.options.validate_every,
        keep=loop.options.average_checkpoints,
    )


def _fall_back(loop: Loop, progress: Progress, log: Log, why: str) -> None:
    """Go back to the last good checkpoint with half the learning rate, or give up."""
    num_fallbacks, rate_scale = progress.num_fallbacks + 1, progress.rate_scale / 2
    last = list_checkpoints(loop.checkpoints)[-1]
    if num_fallbacks > MAX_FALLBACKS:
        raise TrainingError(
            f"step {progress.step}: {why}, {num_fallbacks} times; giving up. The last good "
            f"checkpoint is {last}. Try a lower --peak-learning-rate, more --warmup-steps, or "
            "--clip-norm 1"
        )
    diverged_step = progress.step
    restored = restore_checkpoint(last, loop.trained)
    restored.num_fallbacks, restored.rate_scale = num_fallbacks, rate_scale
    for name, value in asdict(restored).items():
        setattr(progress, name, value)
    log.event("divergence", step=diverged_step, why=why, back_to=progress.step)
    log.say(
        f"step {diverged_step}: {why}; going back to step {progress.step} with the learning rate "
        f"times {rate_scale:g}"
    )


def _limit_reached(options: TrainingOptions, progress: Progress) -> str:
    """Say which limit is reached, if one is."""
    if options.max_steps is not None and progress.step >= options.max_steps:
        return f"{options.max_steps:,} updates done"
    if options.max_epochs is not None and progress.epoch >= options.max_epochs:
        return f"{options.max_epochs} passes over the corpus done"
    if options.max_minutes is not None and progress.seconds >= 60 * options.max_minutes:
        return f"{options.max_minutes:g} minutes passed"
    if options.patience is not None and progress.num_worse >= options.patience:
        return f"no better validation since step {progress.best_step:,}"
    return ""


def _seconds_left(options: TrainingOptions, progress: Progress) -> float | None:
    """Estimate the time until the nearest limit that can be foreseen."""
    shares = []
    if options.max_steps is not None:
        shares.append(progress.step / options.max_steps)
    if options.max_minutes is not None:
        shares.append(progress.seconds / (60 * options.max_minutes))
    if options.max_epochs is not None and progress.epoch:
        shares.append(progress.epoch / options.max_epochs)
    done = max(shares, default=0.0)
    return progress.seconds * (1 - done) / done if done else None


def precision_context(options: TrainingOptions, device: torch.device) -> AbstractContextManager:
    """Make the context in which products are computed in the wanted precision.

    Parameters
    ----------
    options : TrainingOptions
        For the precision.
    device : torch.device
        Where.

    Returns
    -------
    AbstractContextManager
        Autocast to bfloat16, or nothing.
    """
    is_half = options.precision == "bfloat16"
    if options.precision == "auto":
        is_half = device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16) if is_half else nullcontext()


def _new_window(loop: Loop) -> Window:
    return Window(torch.zeros((), device=loop.device), started=time.monotonic())


@contextmanager
def _stop_requests() -> Iterator[list[str]]:
    """Note Ctrl-C and SIGTERM instead of dying; a second Ctrl-C dies."""
    requests: list[str] = []

    def note(number: int, _frame: object) -> None:
        requests.append("interrupted")
        if number == signal.SIGINT:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, note)
    except ValueError:  # not in the main thread: the caller has the signals
        pass
    try:
        yield requests
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
