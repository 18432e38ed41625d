"""Checkpoints: whole or not there, and only so many."""

import shutil

import pytest
import torch
from torch import nn

from dragoman.errors import FolderError
from dragoman.files import sweep
from dragoman.training.checkpoints.checkpoint import (
    Progress,
    TrainingState,
    averaged_checkpoints,
    list_checkpoints,
    restore_checkpoint,
    save_checkpoint,
    step_of,
)
from dragoman.training.optimisers.optimiser import MovingAverage, build_optimiser
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.distributed import Workers
from dragoman.weights import write_weights


@pytest.fixture
def trained():
    """A small model after one update."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimiser = build_optimiser(model, TrainingOptions())
    model(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return TrainingState(model=model, optimiser=optimiser, average=MovingAverage(model, 0.9))


def test_everything_comes_back(tmp_path, trained):
    progress = Progress(step=7, epoch=2, epoch_updates=3, best_value=1.5, rate_scale=0.5)
    path = save_checkpoint(tmp_path, trained, progress, keep=3, validate_every=7)
    expected = {name: each.clone() for name, each in trained.model.state_dict().items()}
    numbers = torch.rand(4)
    with torch.no_grad():
        trained.model.weight.zero_()
        trained.average.weights["weight"].zero_()
    assert restore_checkpoint(path, trained) == progress
    for name, value in trained.model.state_dict().items():
        assert torch.equal(value, expected[name])
    assert trained.average.weights["weight"].abs().sum() > 0
    assert torch.equal(torch.rand(4), numbers)


def test_only_so_many_are_kept(tmp_path, trained):
    for step in (1, 2, 3, 4):
        save_checkpoint(tmp_path, trained, Progress(step=step), keep=2, validate_every=1)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-00000003", "step-00000004"]


def test_a_failed_save_leaves_the_old_ones(tmp_path, trained, monkeypatch):
    save_checkpoint(tmp_path, trained, Progress(step=1), keep=1, validate_every=1)

    def no_space(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dragoman.training.checkpoints.checkpoint.write_weights", no_space)
    with pytest.raises(FolderError, match="No space left on device"):
        save_checkpoint(tmp_path, trained, Progress(step=2), keep=1, validate_every=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-00000001"]


def test_damaged_progress_is_named(tmp_path, trained):
    path = save_checkpoint(tmp_path, trained, Progress(step=1), keep=1, validate_every=1)
    raw = (path / "progress.json").read_text()
    spoilt = [raw.replace('"epoch": 0', '"epoch": 7'), raw[:40], "[]", '{"step": 1, "surprise": 2}']
    for each in (*spoilt, '{"step": 2}'):
        assert each != raw
        (path / "progress.json").write_text(each)
        with pytest.raises(FolderError, match=r"progress\.json: missing, damaged, or not of this"):
            restore_checkpoint(path, trained)
    (path / "progress.json").write_text('{"step": 1, "epoch": 2}')  # of an older version
    assert restore_checkpoint(path, trained) == Progress(step=1, epoch=2)


def test_only_checkpoints_of_validations_are_averaged(tmp_path, trained):
    for step in (0, 4, 5, 8, 11):
        save_checkpoint(tmp_path, trained, Progress(step=step), keep=5, validate_every=4)
    kept = [step_of(path) for path in list_checkpoints(tmp_path)]
    assert kept == [4, 8, 11]
    assert [step_of(path) for path in averaged_checkpoints(tmp_path, 4, 5)] == [4, 8]
    assert [step_of(path) for path in averaged_checkpoints(tmp_path, 4, 1)] == [8]


def test_there_is_always_one_before(tmp_path, trained):
    for step in range(5):
        save_checkpoint(tmp_path, trained, Progress(step=step), keep=1, validate_every=2)
        kept = [step_of(path) for path in list_checkpoints(tmp_path)]
        assert kept == ([0] if not step else [step - 1, step])


def test_a_removal_that_is_cut_off_leaves_no_half(tmp_path, trained, monkeypatch):
    save_checkpoint(tmp_path, trained, Progress(step=0), keep=1, validate_every=1)
    save_checkpoint(tmp_path, trained, Progress(step=1), keep=1, validate_every=1)

    def cut_off(path, **_):
        if (path / "model.safetensors").exists():
            (path / "model.safetensors").unlink()
            raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", cut_off)
    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(tmp_path, trained, Progress(step=2), keep=1, validate_every=1)
    monkeypatch.undo()
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [1, 2]
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-00000001", "step-00000002"]


def test_foreign_memory_is_named(tmp_path, trained):
    path = save_checkpoint(tmp_path, trained, Progress(step=1), keep=1, validate_every=1)
    write_weights(path / "optimiser.safetensors", {"exp_avg/other": torch.zeros(1)})
    with pytest.raises(FolderError, match="damaged, or not a checkpoint of this run"):
        restore_checkpoint(path, trained)


def test_a_worker_that_was_not_there_gets_random_numbers_of_its_own(tmp_path, trained):
    path = save_checkpoint(tmp_path, trained, Progress(step=5), keep=1, validate_every=1)
    drawn = {}
    for rank, seed in ((0, 1), (0, 2), (1, 1), (2, 1), (1, 2)):
        for _ in range(2):
            workers = Workers(rank=rank, num_workers=3)
            restore_checkpoint(path, trained, workers=workers, seed=seed)
            drawn.setdefault((rank, seed), []).append(torch.rand(4).tolist())
    assert all(first == second for first, second in drawn.values())
    assert drawn[0, 1] == drawn[0, 2]  # saved, so the seed has no say
    others = [drawn[key][0] for key in ((0, 1), (1, 1), (2, 1), (1, 2))]
    assert all(one != other for place, one in enumerate(others) for other in others[:place])
