"""The training loop: update, report, validate, save."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor, nn

from dragoman.data.prefetch import prefetched
from dragoman.errors import TrainingError
from dragoman.training.budget.time_budget import BudgetCorrector, schedule_position
from dragoman.training.checkpoints.checkpoint import (
    Progress,
    TrainingState,
    list_checkpoints,
    save_checkpoint,
)
from dragoman.training.checkpoints.recovery import restore_newest
from dragoman.training.checkpoints.snapshots import SNAPSHOTS, is_snapshot_due, save_snapshot
from dragoman.training.log import Log, SilentLog
from dragoman.training.optimisers.schedule import learning_rate
from dragoman.training.options import TrainingOptions
from dragoman.training.stagnation import note_validation
from dragoman.training.stopping import INTERRUPTED, EndEstimator, decide, stop_requests
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.gradient_accumulation import (
    apply_gradient,
    compute_gradient,
    find_num_parts,
)
from dragoman.training.updates.gradients import Gradients
from dragoman.training.updates.sharding import gathered_model, local_shard
from dragoman.training.updates.update_planner import Update, UpdatePlanner
from dragoman.training.validation import Validation, Validator

MAX_FALLBACKS = 3
DIVERGED_NATS = 2.0

BestWriter = Callable[[Progress, Validation], None]


@dataclass(frozen=True, kw_only=True)
class Loop:
    """What the loop needs: gradients, batches, validation, options and workers.

    Parameters
    ----------
    gradients : Gradients
        Computes the loss of a batch and its gradient.
    trained : TrainingState
        What training changes.
    planner : UpdatePlanner
        Makes updates of the training corpus.
    validator : Validator | None
        Says how good the model is; only the first worker has one.
    whole : nn.Module | None
        The model that is validated: the trained one, or a copy of it if that is divided.
    options : TrainingOptions
        How to train.
    peak_learning_rate : float
        At the end of warm-up.
    checkpoints : Path
        Folder of the run's checkpoints.
    device : torch.device
        Where to train.
    workers : Workers
        Who trains.
    end_estimator : EndEstimator
        How fast the run nears its end.
    """

    gradients: Gradients
    trained: TrainingState
    planner: UpdatePlanner
    validator: Validator | None
    whole: nn.Module | None
    options: TrainingOptions
    peak_learning_rate: float
    checkpoints: Path
    device: torch.device
    workers: Workers
    end_estimator: EndEstimator = field(default_factory=EndEstimator)

    @property
    def is_sharded(self) -> bool:
        """Whether the weights are sharded among the workers."""
        return self.whole is not self.trained.model

    def num_parts(self, progress: Progress) -> int:
        """Return the number of gradient accumulation steps of each worker."""
        return max(
            self.options.accumulate or 1, -(-progress.num_shares // self.workers.num_workers)
        )


@dataclass
class LogWindow:
    """Sums since the last line of the log."""

    loss: Tensor
    num_target_tokens: int = 0
    num_tokens: int = 0
    num_places: int = 0
    started: float = 0.0
    waited: float = 0.0


class _DivergedError(Exception):
    """The loss is not finite, or rose far above its lowest."""


def train(loop: Loop, progress: Progress, log: Log | SilentLog, on_best: BestWriter) -> str:
    """Train until a limit is reached or a stop is requested.

    Parameters
    ----------
    loop : Loop
        What to work with.
    progress : Progress
        Where the run stands; kept up to date.
    log : Log | SilentLog
        Where to tell what happens.
    on_best : Callable[[Progress, Validation], None]
        Called when a validation is the best so far, with the model as it was validated.
    """
    limit = decide(loop.options, progress, loop.workers).limit
    if limit:
        if progress.best_value is None:
            _validate(loop, progress, log, on_best)
        return limit
    with stop_requests() as stop:
        if loop.options.accumulate is None:
            _fit_memory(loop, progress, log)
        while True:
            try:
                return _train_until_diverged(loop, progress, log, on_best, stop)
            except _DivergedError as error:
                _restore_after_divergence(loop, progress, log, str(error))


def _train_until_diverged(
    loop: Loop, progress: Progress, log: Log | SilentLog, on_best: BestWriter, stop: list[str]
) -> str:
    """Update, log, validate and save in turn; return why training stopped."""
    options, workers = loop.options, loop.workers
    clock = saved = ready = time.monotonic()
    started = clock - progress.wall_seconds
    keeper = BudgetCorrector(options, progress)
    window = _new_window(loop)
    loop.trained.model.train()
    while True:
        for update in prefetched(_updates(loop, progress)):
            window.waited += time.monotonic() - ready
            progress.step += 1
            progress.epoch_updates += 1
            num_parts = _update(loop, update, progress, window)
            now = time.monotonic()
            progress.seconds += now - clock
            progress.wall_seconds = now - started
            clock = now
            limit, is_save_due, num_parts = decide(
                options, progress, workers, stop, seconds_unsaved=now - saved, num_parts=num_parts
            )
            _note_memory(loop, progress, log, num_parts)
            is_validation = progress.step % options.validate_every == 0
            if progress.step % options.log_every == 0 or is_validation or limit:
                _report(loop, progress, window, log)
                window = _new_window(loop)
            paused = time.monotonic()
            if is_validation or (limit and limit != INTERRUPTED):
                _validate(loop, progress, log, on_best)
                validated = time.monotonic() - paused
                progress.wall_seconds = time.monotonic() - started
                _keep_budget(keeper, progress, validated, log, workers)
                limit = limit or decide(loop.options, progress, loop.workers).limit
            if is_validation or limit or is_save_due:
                _save(loop, progress)
                saved = time.monotonic()
            if limit:
                return limit
            pause = time.monotonic() - paused
            window.started += pause
            clock += pause
            ready = time.monotonic()
        progress.epoch += 1
        progress.epoch_updates = 0
        limit = decide(loop.options, progress, loop.workers).limit
        if limit:
            if progress.step % options.validate_every:
                _report(loop, progress, window, log)
                _validate(loop, progress, log, on_best)
                _save(loop, progress)
            return limit


def _keep_budget(
    keeper: BudgetCorrector,
    progress: Progress,
    validation_seconds: float,
    log: Log | SilentLog,
    workers: Workers,
) -> None:
    """Correct a planned number of updates by the measured speed; for single-process runs."""
    if not workers.is_single:
        return
    told = keeper.correct(progress, validation_seconds)
    if told:
        log.event("correction", step=progress.step, end_step=progress.end_step)
        log.say(told)


def _updates(loop: Loop, progress: Progress) -> Iterator[Update]:
    """Yield the remaining updates of the current pass over the corpus."""
    for rows in islice(loop.planner.plan(progress.epoch), progress.epoch_updates, None):
        yield loop.planner.make_update(rows, loop.num_parts(progress))


def _update(loop: Loop, update: Update, progress: Progress, window: LogWindow) -> int:
    """Make one update of the weights; return the number of accumulation steps it took."""
    trained = loop.trained
    num_parts = loop.num_parts(progress)
    if update.num_parts != num_parts:  # batched before memory ran out
        update = loop.planner.make_update(update.rows, num_parts)
    try:
        loss, update = compute_gradient(
            update, loop.gradients, loop.planner, trained, may_split=not loop.is_sharded
        )
    except TrainingError as error:
        raise TrainingError(f"step {progress.step}: {error}") from None
    if not loop.is_sharded:
        loop.workers.sum_gradients(trained.model.parameters())
    window.loss += loss
    window.num_target_tokens += update.num_target_tokens
    window.num_tokens += sum(batch.num_tokens for batch in update.batches)
    window.num_places += sum(batch.num_places for batch in update.batches)
    apply_gradient(trained, loop.options.clip_norm, _rate(loop, progress))
    if trained.average is not None:
        trained.average.update(progress.step)
    if loop.options.snapshots and is_snapshot_due(progress.step):
        folder = loop.checkpoints.parent / SNAPSHOTS
        save_snapshot(folder, trained.model, progress.step, loop.workers)
    return update.num_parts


def _rate(loop: Loop, progress: Progress) -> float:
    options = loop.options
    rate = learning_rate(
        schedule_position(options, progress),
        peak=loop.peak_learning_rate,
        warmup_steps=options.warmup_steps,
        schedule=options.schedule,
        end=options.max_steps,
        decay_share=options.decay_share,
    )
    return rate * progress.rate_scale


def _fit_memory(loop: Loop, progress: Progress, log: Log | SilentLog) -> None:
    """Find the number of accumulation steps with which updates fit in memory."""
    num_parts = find_num_parts(
        loop.gradients,
        loop.planner,
        loop.trained,
        num_parts=loop.num_parts(progress),
        epoch=progress.epoch,
    )
    (num_parts,) = loop.workers.all_reduce_max(num_parts)
    _note_memory(loop, progress, log, num_parts)


def _note_memory(loop: Loop, progress: Progress, log: Log | SilentLog, num_parts: int) -> None:
    """Record and log an increase of the accumulation steps."""
    if num_parts <= loop.num_parts(progress):
        return
    progress.num_shares = num_parts * loop.workers.num_workers
    log.event("memory", step=progress.step, parts=num_parts)
    log.say(
        f"step {progress.step:,}: out of memory; each process now computes its share of an update "
        f"in {num_parts} parts"
    )


def _report(loop: Loop, progress: Progress, window: LogWindow, log: Log | SilentLog) -> None:
    """Log the mean loss and the speed, and detect divergence."""
    if not window.num_target_tokens:
        return
    total, num_tokens, num_places = loop.workers.all_reduce_sum(
        window.loss.item(), window.num_tokens, window.num_places
    )
    loss = total / window.num_target_tokens
    seconds = max(time.monotonic() - window.started, 1e-9)
    share, seconds_left = loop.end_estimator.estimate(loop.options, progress)
    log.event(
        "update",
        step=progress.step,
        epoch=progress.epoch,
        loss=loss,
        tokens_per_second=num_tokens / seconds,
        learning_rate=_rate(loop, progress),
        padding_share=1 - num_tokens / num_places,
        waiting_share=window.waited / seconds,
        seconds=progress.seconds,
        share_done=share,
        seconds_left=seconds_left,
    )
    lowest = progress.lowest_loss
    if not math.isfinite(loss):
        raise _DivergedError(f"the loss became {loss}")
    if lowest is not None and loss > lowest + DIVERGED_NATS:
        raise _DivergedError(f"the loss rose from {lowest:.2f} to {loss:.2f}")
    progress.lowest_loss = loss if lowest is None else min(lowest, loss)


def _check_finite(loop: Loop) -> None:
    """Raise if a weight is not finite."""
    norms = torch._foreach_norm([local_shard(each) for each in loop.trained.model.parameters()])
    is_bad = not torch.isfinite(torch.stack(norms).sum())
    if any(loop.workers.all_reduce_max(is_bad)):
        raise _DivergedError("a weight is no finite number")


def _validate(loop: Loop, progress: Progress, log: Log | SilentLog, on_best: BestWriter) -> None:
    """Validate the model (its average, if there is one), and keep it if it is the best so far."""
    _check_finite(loop)
    model, average = loop.trained.model, loop.trained.average
    loop.workers.average_statistics(model)
    with (
        average.in_place() if average is not None else nullcontext(),
        gathered_model(model, loop.whole, loop.workers, loop.device),
    ):
        loop.workers.run_on_first(lambda: _validate_on_first(loop, progress, log, on_best))


def _validate_on_first(
    loop: Loop, progress: Progress, log: Log | SilentLog, on_best: BestWriter
) -> None:
    """Validate on the first worker."""
    assert loop.validator is not None
    found = loop.validator.validate()
    value = found.value(loop.options.best_by)
    is_best = progress.is_better(value, found.loss)
    if is_best:
        progress.best_value, progress.best_loss = value, found.loss
        progress.best_step, progress.num_worse = progress.step, 0
        on_best(progress, found)
    else:
        progress.num_worse += 1
    log.event("validation", step=progress.step, is_best=is_best, **asdict(found))
    note_validation(loop.options, progress, found.loss, log)


def _save(loop: Loop, progress: Progress) -> None:
    """Write a checkpoint of finite weights."""
    _check_finite(loop)
    loop.workers.average_statistics(loop.trained.model)
    save_checkpoint(
        loop.checkpoints,
        loop.trained,
        progress,
        validate_every=loop.options.validate_every,
        keep=loop.options.average_checkpoints,
        workers=loop.workers,
    )


def _restore_after_divergence(
    loop: Loop, progress: Progress, log: Log | SilentLog, why: str
) -> None:
    """Restore the last good checkpoint with half the learning rate, or give up."""
    num_fallbacks, rate_scale = progress.num_fallbacks + 1, progress.rate_scale / 2
    if num_fallbacks > MAX_FALLBACKS:
        path = list_checkpoints(loop.checkpoints)[-1]
        raise TrainingError(
            f"step {progress.step}: {why}, {num_fallbacks} times; giving up. The last good "
            f"checkpoint is {path}. Try a lower --peak-learning-rate, more --warmup-steps, or "
            "--clip-norm 1"
        )
    diverged_step, num_shares = progress.step, progress.num_shares
    restored = restore_newest(
        loop.checkpoints, loop.trained, log.say, workers=loop.workers, seed=loop.options.seed
    )
    restored.num_fallbacks, restored.rate_scale = num_fallbacks, rate_scale
    restored.num_shares = num_shares
    for name, value in asdict(restored).items():
        setattr(progress, name, value)
    log.event("divergence", step=diverged_step, why=why, back_to=progress.step)
    log.say(
        f"step {diverged_step}: {why}; going back to step {progress.step} with the learning rate "
        f"times {rate_scale:g}"
    )


def _new_window(loop: Loop) -> LogWindow:
    return LogWindow(torch.zeros((), device=loop.device), started=time.monotonic())
