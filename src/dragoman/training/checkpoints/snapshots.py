"""Snapshots: the weights alone, kept early and often, to look at how a model came to be."""

from pathlib import Path

from torch import nn

from dragoman.training.checkpoints.checkpoint import SINGLE_PROCESS
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.sharding import gather_full
from dragoman.weights import weights_of, write_weights

SNAPSHOTS = "snapshots"


def is_snapshot_due(step: int) -> bool:
    """Tell whether weights are kept after an update: 1, 2, 5, 10, 20, 50, 100 and so on."""
    return str(step).rstrip("0") in ("1", "2", "5")


def save_snapshot(
    folder: Path, model: nn.Module, step: int, workers: Workers = SINGLE_PROCESS
) -> None:
    """Write the weights of a model."""
    weights = gather_full(weights_of(model), workers)
    if workers.is_first:
        folder.mkdir(exist_ok=True)
        write_weights(folder / f"step-{step:08d}.safetensors", weights)


def list_snapshots(folder: Path) -> dict[int, Path]:
    """List the snapshots in a folder by their steps."""
    found = {}
    for path in sorted(folder.glob("step-*.safetensors")):
        digits = path.stem.removeprefix("step-")
        if digits.isascii() and digits.isdecimal():
            found[int(digits)] = path
    return found
