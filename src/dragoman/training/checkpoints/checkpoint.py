"""Checkpoints: the complete state of a run, so that it resumes exactly where it stopped.

A checkpoint is a folder ``checkpoints/step-…`` of safetensors and JSON, written beside and moved
into place, so that at any moment the newest one there is whole. There is always one before it, for
the case that the newest one is damaged later: see `dragoman.training.checkpoints.recovery`.
"""

import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.store.mapped import read_facts, write_facts
from dragoman.errors import FolderError
from dragoman.files import written_beside
from dragoman.training.optimisers.optimiser import (
    MovingAverage,
    optimiser_tensors,
    restore_optimiser,
)
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.sharding import gather_full, shard_like
from dragoman.weights import put_weights, read_weights, weights_of, write_weights

SINGLE_PROCESS = Workers()
PROGRESS_FILE = "progress.json"


@dataclass(kw_only=True)
class Progress:
    """The progress of a run: counters, best scores, corrections of the plan.

    Parameters
    ----------
    step : int
        Updates done.
    epoch : int
        Passes over the corpus completed.
    epoch_updates : int
        Updates done of the present pass.
    seconds : float
        Time spent training.
    rate_scale : float
        What the learning rate is multiplied by after divergence.
    num_fallbacks : int
        How often the run went back after divergence.
    best_value : float | None
        Of the best validation.
    best_loss : float
        Its loss, which decides between equals.
    best_step : int
        When that was.
    num_worse : int
        Validations since.
    lowest_loss : float | None
        Lowest mean training loss between two lines of the log.
    num_shares : int
        Shares, over all workers, into which lack of memory made updates be divided; 0: it did not.
    lowest_valid_loss : float | None
        Lowest loss of a validation.
    lowest_valid_step : int
        When that was.
    training_loss_then : float | None
        What `lowest_loss` was at that time.
    is_stagnation_told : bool
        Whether a person was told that validation has stopped improving.
    wall_seconds : float
        Time since the run began, preparation and validations included, pauses between its sessions
        not.
    planned_seconds : float
        What it was planned to take of that; 0: it was not planned.
    end_step : int
        After which update a run ends whose plan was corrected; 0: as planned.
    corrected_step : int
        When that was.
    corrected_position : float
        Which update of the plan it counted as.
    """

    step: int = 0
    epoch: int = 0
    epoch_updates: int = 0
    seconds: float = 0.0
    rate_scale: float = 1.0
    num_fallbacks: int = 0
    best_value: float | None = None
    best_loss: float = 0.0
    best_step: int = 0
    num_worse: int = 0
    lowest_loss: float | None = None
    num_shares: int = 0
    lowest_valid_loss: float | None = None
    lowest_valid_step: int = 0
    training_loss_then: float | None = None
    is_stagnation_told: bool = False
    wall_seconds: float = 0.0
    planned_seconds: float = 0.0
    end_step: int = 0
    corrected_step: int = 0
    corrected_position: float = 0.0

    def is_better(self, value: float, loss: float) -> bool:
        """Tell whether a validation is better than the best so far."""
        if self.best_value is None:
            return True
        return (value, -loss) > (self.best_value, -self.best_loss)


@dataclass(frozen=True, kw_only=True)
class TrainingState:
    """The mutable state of training: model, optimiser and weight average.

    Parameters
    ----------
    model : nn.Module
        The weights.
    optimiser : torch.optim.Optimizer
        Its moments.
    average : MovingAverage | None
        The moving average, if one is kept.
    """

    model: nn.Module
    optimiser: torch.optim.Optimizer
    average: MovingAverage | None


def save_checkpoint(
    folder: Path,
    trained: TrainingState,
    progress: Progress,
    *,
    validate_every: int,
    keep: int,
    workers: Workers = SINGLE_PROCESS,
) -> Path:
    """Write a checkpoint, then delete old ones and damaged ones of earlier steps."""
    path = checkpoint_path(folder, progress.step)
    memory = optimiser_tensors(trained.model, trained.optimiser)
    files = {
        "model": gather_full(weights_of(trained.model), workers),
        "optimiser": gather_full(memory, workers) | _random_states(workers),
    }
    if trained.average is not None:
        files["average"] = gather_full(trained.average.weights, workers)
    if not workers.is_first:
        return path
    with written_beside(path) as beside:
        beside.mkdir(parents=True)
        for name, tensors in files.items():
            write_weights(beside / f"{name}.safetensors", tensors)
        write_facts(beside / PROGRESS_FILE, asdict(progress))
    kept = {path, *averaged_checkpoints(folder, validate_every, keep)}
    older = [each for each in list_checkpoints(folder) if each not in kept]
    if len(kept) == 1:
        older = older[:-1]  # keep one for recovery
    for old in older:
        _remove(old)
    for damaged in list_damaged(folder):
        if step_of(damaged) <= progress.step:
            _remove(damaged)
    return path


def averaged_checkpoints(folder: Path, validate_every: int, count: int) -> list[Path]:
    """List the checkpoints that enter the final average.

    Returns
    -------
    list[Path]
        The last ones saved at a validation. Those saved in between, by the clock or because the
        run was stopped, do not count: the average must not depend on how often that happened.
    """
    steps = {path: step_of(path) for path in list_checkpoints(folder)}
    return [path for path, step in steps.items() if step and step % validate_every == 0][-count:]


def checkpoint_path(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return folder / f"step-{step:08d}"


def step_of(path: Path) -> int:
    """Parse the step from the name of a checkpoint."""
    return int(path.name.split("-")[-1])


def restore_checkpoint(
    path: Path, trained: TrainingState, *, workers: Workers = SINGLE_PROCESS, seed: int = 0
) -> Progress:
    """Restore a checkpoint, whatever the number of workers that wrote it.

    Parameters
    ----------
    path : Path
        Its folder.
    trained : TrainingState
        Where to put them.
    workers : Workers
        Each reads for itself.
    seed : int
        The run's seed. It decides, with step and rank, the random numbers of a worker that was
        not there when the checkpoint was written.
    """
    progress = read_progress(path)
    weights_path = path / "model.safetensors"
    own = weights_of(trained.model)
    weights = {
        name: shard_like(each, own[name]) if name in own else each
        for name, each in read_weights(weights_path).items()
    }
    put_weights(trained.model, weights, weights_path)
    memory = read_weights(path / "optimiser.safetensors")
    states = {name: memory.pop(name) for name in list(memory) if name.startswith("random/")}
    try:
        restore_optimiser(trained.model, trained.optimiser, memory)
        _restore_random_states(states, [seed, step_of(path), workers.rank])
        if trained.average is not None:
            for name, value in read_weights(path / "average.safetensors").items():
                like = trained.average.weights[name]
                like.copy_(shard_like(value, like))
    except torch.OutOfMemoryError:
        raise
    except (ValueError, TypeError, KeyError, RuntimeError) as error:
        raise FolderError(
            f"{path}: damaged, or not a checkpoint of this run ({error}); get it again"
        ) from None
    return progress


def read_progress(path: Path) -> Progress:
    """Read the progress stored in a checkpoint."""
    plain = read_facts(path / PROGRESS_FILE)
    if plain.get("step") == step_of(path) and plain.keys() <= asdict(Progress()).keys():
        return Progress(**plain)
    raise FolderError(
        f"{path / PROGRESS_FILE}: missing, damaged, or not of this checkpoint; get it again"
    )


def list_checkpoints(folder: Path) -> list[Path]:
    """List the checkpoints of a run."""
    return sorted(folder.glob("step-*")) if folder.is_dir() else []


def list_damaged(folder: Path) -> list[Path]:
    """List the damaged checkpoints that were renamed."""
    return list(folder.glob("damaged*-step-*"))


def _remove(path: Path) -> None:
    """Delete a checkpoint atomically: rename it first, so that a kill leaves no partial one."""
    gone = path.with_name(f".{path.name}.{os.getpid()}.new")
    try:
        path.replace(gone)
    except OSError:
        return
    shutil.rmtree(gone, ignore_errors=True)


def _random_states(workers: Workers) -> dict[str, Tensor]:
    """Collect the states of all workers' random number generators."""
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    if torch.backends.mps.is_available():
        states["mps"] = torch.mps.get_rng_state()
    return {
        f"random/{_of_worker(rank)}{kind}": each
        for kind, state in states.items()
        for rank, each in enumerate(workers.gather(state))
    }


def _restore_random_states(states: dict[str, Tensor], seeds: list[int]) -> None:
    """Restore the random number generators; seed those of workers without a stored state."""
    prefix = f"random/{_of_worker(seeds[-1])}"
    if f"{prefix}cpu" not in states:
        torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1, np.uint64)[0]))
        return
    torch.set_rng_state(states[f"{prefix}cpu"])
    if f"{prefix}cuda" in states and torch.cuda.is_available():
        torch.cuda.set_rng_state(states[f"{prefix}cuda"])
    if f"{prefix}mps" in states and torch.backends.mps.is_available():
        torch.mps.set_rng_state(states[f"{prefix}mps"])


def _of_worker(rank: int) -> str:
    return f"{rank}/" if rank else ""
