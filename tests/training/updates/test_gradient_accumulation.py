"""Memory that is too small: divided updates give the same weights, or one clear line."""

import pytest
import torch
from safetensors.torch import load_file

from dragoman.errors import TrainingError
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.run import resume_run
from dragoman.training.updates.gradients import Gradients


@pytest.fixture
def small(small):
    """Runs without much validation."""
    small["corpus"]["valid_pairs"] = 3
    small["search"] = {"max_extra_tokens": 2}
    small["training"]["validate_every"] = 50
    small["training"]["kernels"] = "off"  # padded batches: packed ones have few sizes
    return small


@pytest.fixture
def double_precision():
    """Rounding that hides nothing."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def small_memory(monkeypatch):
    """Pretend that batches over a size do not fit the memory; return what was tried."""
    tried = []
    plain = TrainingStep.forward

    def limit(most_places, after=0):
        def forward(self, batch):
            tried.append(batch.num_places)
            if self.training and len(tried) > after and batch.num_places > most_places:
                plain(self, batch).backward()  # what was computed so far must not count
                raise torch.OutOfMemoryError("CUDA out of memory")
            return plain(self, batch)

        monkeypatch.setattr(TrainingStep, "forward", forward)
        return tried

    return limit


def weights(out):
    path = list_checkpoints(out / "checkpoints")[-1]
    return {
        f"{name}/{key}": value
        for name in ("model", "optimiser")
        for key, value in load_file(path / f"{name}.safetensors").items()
        if not key.startswith("random/")
    }


def assert_close(one, other):
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], atol=1e-12, rtol=0, msg=name)


@pytest.mark.parametrize("accumulate", [1, 3, "off"])
@pytest.mark.usefixtures("double_precision")
def test_running_out_of_memory_changes_nothing(
    tmp_path, run, small, events, small_memory, accumulate, capsys
):
    small["model"]["dropout"] = 0.0
    small["training"] |= {"max_steps": 12, "clip_norm": 0.1}
    whole = run(tmp_path / "whole", small)
    small["training"]["accumulate"] = accumulate
    tried = small_memory(70)
    parts = run(tmp_path / "parts", small)
    assert_close(whole, parts)
    assert max(tried) > 70
    found = events(parts, "memory")
    assert all(each["parts"] > 1 for each in found)
    if accumulate == "off":  # found before the first update, and no need to look again
        assert [each["step"] for each in found] == [0] * len(found)
        assert len(found) == 1
    elif accumulate == 1:
        assert [each["parts"] for each in found] == [4]
        assert found[0]["step"] >= 1
        assert "out of memory; each process now computes" in capsys.readouterr().err


@pytest.mark.usefixtures("double_precision")
def test_what_memory_asks_for_is_remembered(tmp_path, run, small, events, small_memory, said):
    small["training"] |= {"max_steps": 6}
    tried = small_memory(70)
    out = run(tmp_path / "out", small)
    (found,) = events(out, "memory")
    num_tried = len([each for each in tried if each > 70])
    resume_run(out, {"training": {"max_steps": 12}}, said.append)
    assert events(out, "memory") == [found]
    assert len([each for each in tried if each > 70]) == num_tried


def test_trying_changes_neither_weights_nor_random_numbers(tmp_path, run, small, events):
    plain = run(tmp_path / "plain", small)
    small["training"]["accumulate"] = "off"
    fitted = run(tmp_path / "fitted", small)
    assert events(fitted, "memory") == []
    for name, value in weights(plain).items():
        assert torch.equal(value, weights(fitted)[name])


def test_auto_keeps_the_recipe_s_batch(tmp_path, run, small, events, small_memory):
    small_memory(70)
    small["training"]["batch_tokens"] = 300
    flags = {"training": {"batch_tokens": "auto"}}
    out = run(tmp_path / "out", small, flags=flags)
    assert events(out, "memory")[0]["step"] == 0
    config = (out / "config.toml").read_text()
    assert "batch_tokens = 300" in config
    assert 'accumulate = "off"' in config


@pytest.mark.parametrize("accumulate", [1, "off"])
def test_a_single_pair_that_does_not_fit_is_one_line(
    tmp_path, run, small, small_memory, accumulate
):
    small["training"]["accumulate"] = accumulate
    small_memory(10)
    with pytest.raises(TrainingError, match=r"out of memory with a single sentence pair .*shard"):
        run(tmp_path / "out", small)


def test_divided_models_cannot_be_divided_further(tmp_path, run, small, small_memory, monkeypatch):
    small_memory(70)
    monkeypatch.setattr("dragoman.training.loop.Loop.is_sharded", property(lambda _: True))
    with pytest.raises(
        TrainingError, match=r"^step 1: out of memory with 1 parts .*--accumulate 2"
    ):
        run(tmp_path / "out", small)


def test_captured_graphs_are_forgotten(tmp_path, run, small, small_memory, monkeypatch):
    forgotten = []
    monkeypatch.setattr(Gradients, "forget", lambda _: forgotten.append(1))
    small_memory(70)
    run(tmp_path / "out", small)
    assert forgotten
