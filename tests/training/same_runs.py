"""What runs that should have ended alike are compared by."""

import torch
from safetensors.torch import load_file

from dragoman.training.checkpoints.checkpoint import list_checkpoints

MODEL_FILES = ("model.safetensors", "dragoman.json", "config.toml", "README.md", "subwords.model")


def last_checkpoint(out):
    return list_checkpoints(out / "checkpoints")[-1]


def assert_same_files(one, other, names=("model", "optimiser", "average")):
    for name in names:
        first, second = (load_file(each / f"{name}.safetensors") for each in (one, other))
        assert first.keys() == second.keys()
        for key, value in first.items():
            assert torch.equal(value, second[key]), f"{name}: {key}"


def assert_same_run(one, other):
    for name in MODEL_FILES:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert_same_files(last_checkpoint(one), last_checkpoint(other))
