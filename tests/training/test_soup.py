"""“dragoman average” on the checkpoints of a run and on whole models."""

import pytest
import torch
from safetensors.torch import load_file

from dragoman.decoding.translator import Translator
from dragoman.training.checkpoint import list_checkpoints
from dragoman.training.soup import average_models


def test_checkpoints_of_a_run_are_averaged(tmp_path, run, small):
    out = run(tmp_path / "run", small)
    checkpoints = list_checkpoints(out / "checkpoints")
    assert len(checkpoints) == 2
    line = average_models(checkpoints, tmp_path / "mean", device="cpu")
    assert "average of 2 models" in line
    parts = [load_file(each / "model.safetensors") for each in checkpoints]
    mean = load_file(tmp_path / "mean" / "model.safetensors")
    for name, value in mean.items():
        torch.testing.assert_close(value, (parts[0][name] + parts[1][name]) / 2)
    assert Translator.load(tmp_path / "mean").translate("un deux").text is not None


@pytest.mark.slow
def test_greedy_average_says_what_it_took(tmp_path, run, small, corpus):
    out = run(tmp_path / "run", small)
    line = average_models(
        list_checkpoints(out / "checkpoints"),
        tmp_path / "soup",
        greedy=True,
        valid_source=corpus.source[0],
        valid_target=corpus.target[0],
        device="cpu",
    )
    assert "of 2 models, BLEU" in line
    assert (tmp_path / "soup" / "model.safetensors").exists()
