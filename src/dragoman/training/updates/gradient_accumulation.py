"""Gradient accumulation: split updates into parts, and into more of them when memory runs out."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from dragoman.errors import TrainingError
from dragoman.training.checkpoints.checkpoint import TrainingState
from dragoman.training.updates.gradients import Gradients
from dragoman.training.updates.update_planner import Update, UpdatePlanner


def compute_gradient(
    update: Update,
    gradients: Gradients,
    planner: UpdatePlanner,
    trained: TrainingState,
    *,
    may_split: bool = True,
) -> tuple[Tensor, Update]:
    """Compute the gradient of this worker's part of an update, with more accumulation if it must.

    Returns
    -------
    tuple[Tensor, Update]
        The summed loss, and the update as it was computed: if memory ran out, in twice as
        many parts, or four times, and so on.
    """
    while True:
        try:
            loss = gradients(update.batches, update.num_target_tokens)
            gradients(update.dummy_batches, math.inf)
            return loss, update
        except torch.OutOfMemoryError:
            pass  # outside of this clause the error is gone, which keeps tensors alive
        discard_gradient(trained, gradients)
        if not may_split:
            raise TrainingError(
                f"out of memory with {update.num_parts} parts an update; go on with --resume "
                f"--accumulate {2 * update.num_parts}"
            )
        _check_divisible(update, planner)
        update = planner.make_update(update.rows, 2 * update.num_parts)


def apply_gradient(
    trained: TrainingState, clip_norm: float | None, learning_rate: float | None = None
) -> None:
    """Clip the gradient, take one step of the optimiser, and clear the gradient."""
    if clip_norm is not None:
        torch.nn.utils.clip_grad_norm_(trained.model.parameters(), clip_norm)
    if learning_rate is not None:
        for group in trained.optimiser.param_groups:
            group["lr"] = learning_rate
    trained.optimiser.step()
    trained.optimiser.zero_grad(set_to_none=True)


def find_num_parts(
    gradients: Gradients,
    planner: UpdatePlanner,
    trained: TrainingState,
    *,
    num_parts: int,
    epoch: int,
) -> int:
    """Find the smallest number of accumulation steps with which updates fit in memory.

    Notes
    -----
    The largest part of the largest update is really computed, by all workers alike, beside as
    much memory as the optimiser will take. If there are several parts it is computed twice, since
    the second finds the gradient of the first in the memory.
    """
    update = planner.make_largest(planner.find_largest(epoch), num_parts)
    with _same_random_numbers():
        while not _fits(update, gradients, trained):
            _check_divisible(update, planner)
            update = planner.make_largest(update.rows, 2 * update.num_parts)
    return update.num_parts


def discard_gradient(trained: TrainingState, gradients: Gradients) -> None:
    """Delete the gradient, and release cached memory."""
    gradients.forget()
    trained.optimiser.zero_grad(set_to_none=True)
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _fits(update: Update, gradients: Gradients, trained: TrainingState) -> bool:
    """Try the one batch of an update, with memory for the optimiser's moments allocated."""
    parameters = [] if trained.optimiser.state else list(trained.model.parameters())
    moments, fits = [], False
    try:
        moments = [torch.empty_like(each) for each in 2 * parameters]
        for _ in range(min(2, update.num_parts)):
            gradients(update.batches, update.num_target_tokens)
        fits = True
    except torch.OutOfMemoryError:
        pass
    moments.clear()
    discard_gradient(trained, gradients)
    return fits


def _check_divisible(update: Update, planner: UpdatePlanner) -> None:
    """Raise an error if an update cannot be divided any further."""
    if update.max_pairs <= 1:
        longest = int(planner.count_tokens(update.rows).max())
        raise TrainingError(
            f"out of memory with a single sentence pair (the longest has {longest:,} subwords); "
            "lower --max-length, train a smaller model, or give --parallel shard on several GPUs"
        )


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Restore the states of the random number generators afterwards."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices):
        yield
