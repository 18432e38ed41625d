"""Recovery from damaged checkpoints: find them, and fall back to the one before."""

from collections.abc import Callable, Sequence
from pathlib import Path

from dragoman.errors import FolderError
from dragoman.tensor_files import TensorFile
from dragoman.training.checkpoints.checkpoint import (
    SINGLE_PROCESS,
    Progress,
    TrainingState,
    checkpoint_path,
    list_checkpoints,
    read_progress,
    restore_checkpoint,
)
from dragoman.training.updates.distributed import Workers


def restore_newest(
    folder: Path,
    trained: TrainingState,
    say: Callable[[str], None],
    *,
    workers: Workers = SINGLE_PROCESS,
    seed: int = 0,
) -> Progress:
    """Restore the newest readable checkpoint, the same on all workers.

    Parameters
    ----------
    folder : Path
        Of all checkpoints of the run.
    trained : TrainingState
        Where to put them.
    say : Callable[[str], None]
        Is told of each damaged checkpoint, which is set aside under another name. It is removed
        when the run has saved as late a step again.
    workers : Workers
        The first one chooses: a shared disk may show the others a new checkpoint later.
    seed : int
        The run's seed: see `restore_checkpoint`.
    """

    def choose() -> Progress:
        damaged: list[tuple[Path, FolderError]] = []
        for path in reversed(list_checkpoints(folder)):
            try:
                progress = restore_checkpoint(path, trained, workers=workers, seed=seed)
            except FolderError as error:
                damaged.append((path, error))
                continue
            for each, why in damaged:
                aside = _set_aside(each)
                say(f"{why}; going on from {path.name} instead, {each.name} is now {aside.name}")
            return progress
        start_anew = f"start anew with --from {folder.parent}, if it has weights, and another --out"
        if damaged:
            raise FolderError(f"{damaged[0][1]}; no checkpoint before it is whole: {start_anew}")
        raise FolderError(f"{folder.parent}: has no checkpoint to go on from; {start_anew}")

    chosen = workers.run_on_first(choose)
    (step,) = workers.all_reduce_max(chosen.step if chosen else 0)
    path = checkpoint_path(folder, step)
    return chosen or restore_checkpoint(path, trained, workers=workers, seed=seed)


def find_readable(paths: Sequence[Path], say: Callable[[str], None]) -> list[Path]:
    """Return the weights files that can be read."""
    whole = []
    for path in paths:
        try:
            TensorFile(path).check()
            whole.append(path)
        except FolderError as error:
            say(f"{error}; averaging without it")
    return whole


def check_checkpoints(folder: Path) -> list[str]:
    """Read every checkpoint of a run completely, and list the damage."""
    found = []
    for path in list_checkpoints(folder):
        needed = {path / f"{name}.safetensors" for name in ("model", "optimiser")}
        for file in sorted(needed | set(path.glob("*.safetensors"))):
            try:
                TensorFile(file).check()
            except FolderError as error:
                found.append(str(error))
        try:
            read_progress(path)
        except FolderError as error:
            found.append(str(error))
    return found


def _set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint."""
    names = ("damaged", *(f"damaged{number}" for number in range(2, 1000)))
    free = (path.with_name(f"{name}-{path.name}") for name in names)
    aside = next(each for each in free if not each.exists())
    return path.replace(aside)
