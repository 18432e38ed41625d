"""Averages of weights against the mean, and the soup against its own rule."""

import pytest
import torch

from dragoman.errors import FolderError
from dragoman.training.checkpoints.average import (
    average_weights,
    find_weights,
    folder_of,
    greedy_soup,
)
from dragoman.weights import write_weights


@pytest.fixture
def files(tmp_path):
    """Three small models, the second far from the others."""
    paths = []
    for index, value in enumerate([1.0, 100.0, 3.0]):
        path = tmp_path / f"{index}.safetensors"
        write_weights(path, {"a": torch.full((2, 3), value), "b": torch.tensor([value, -value])})
        paths.append(path)
    return paths


def test_average_is_the_mean(files):
    found = average_weights([files[0], files[2]])
    assert torch.equal(found["a"], torch.full((2, 3), 2.0))
    assert torch.equal(found["b"], torch.tensor([2.0, -2.0]))


def test_average_of_many_equals_torchs_mean(tmp_path):
    torch.manual_seed(0)
    tensors = [torch.randn(50, 7) for _ in range(9)]
    paths = []
    for index, each in enumerate(tensors):
        paths.append(tmp_path / f"{index}")
        write_weights(paths[-1], {"w": each})
    expected = torch.stack(tensors).double().mean(0).float()
    assert torch.equal(average_weights(paths)["w"], expected)


def test_greedy_soup_leaves_out_what_does_not_help(files):
    soup = greedy_soup(files, lambda weights: -abs(weights["a"].mean().item() - 2.0))
    assert set(soup.chosen) == {files[0], files[2]}
    assert soup.weights["a"].mean().item() == 2.0
    assert max(soup.scores) == 0.0


def test_greedy_soup_is_never_worse_than_the_best(files):
    for goal in (0.0, 1.0, 40.0, 100.0):
        soup = greedy_soup(
            files, lambda weights, goal=goal: -abs(weights["a"].mean() - goal).item()
        )
        best = max(-abs(value - goal) for value in (1.0, 100.0, 3.0))
        assert -abs(soup.weights["a"].mean().item() - goal) >= best - 1e-6


def test_models_of_other_shape_are_refused(files, tmp_path):
    other = tmp_path / "other.safetensors"
    write_weights(other, {"a": torch.zeros(2, 4), "b": torch.zeros(2)})
    with pytest.raises(FolderError, match=r"other\.safetensors: has another shape"):
        average_weights([files[0], other])


def test_places_are_found(tmp_path, files):
    run = tmp_path / "run"
    checkpoint = run / "checkpoints" / "step-00000004"
    checkpoint.mkdir(parents=True)
    (checkpoint / "model.safetensors").write_bytes(files[0].read_bytes())
    (run / "model.safetensors").write_bytes(files[0].read_bytes())
    found = find_weights([run, checkpoint])
    assert [folder_of(path) for path in found] == [run, run]
    with pytest.raises(FolderError, match="neither a model folder nor a checkpoint"):
        find_weights([tmp_path / "none"])
