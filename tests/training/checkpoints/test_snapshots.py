"""Snapshots: few, early, and equal to the weights that there were."""

import torch

from dragoman.training.checkpoints.snapshots import (
    is_snapshot_due,
    list_snapshots,
    save_snapshot,
)
from dragoman.weights import read_weights


def test_snapshots_are_early_and_few():
    due = [step for step in range(1, 10_001) if is_snapshot_due(step)]
    assert due == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000]
    assert not is_snapshot_due(0)


def test_snapshot_has_the_weights(tmp_path):
    model = torch.nn.Linear(3, 2)
    save_snapshot(tmp_path / "snapshots", model, 20)
    save_snapshot(tmp_path / "snapshots", model, 1)
    (tmp_path / "snapshots" / "step-no.safetensors").touch()
    found = list_snapshots(tmp_path / "snapshots")
    assert list(found) == [1, 20]
    torch.testing.assert_close(read_weights(found[20])["weight"], model.weight.detach())
    assert list_snapshots(tmp_path / "none") == {}
