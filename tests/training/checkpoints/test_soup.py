"""“dragoman average” on the checkpoints of a run and on whole models."""

import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from dragoman.decoding.translator import Translator
from dragoman.folder import read_folder, write_description
from dragoman.training.checkpoints.checkpoint import list_checkpoints
from dragoman.training.checkpoints.soup import average_models


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


def test_a_greedy_average_leaves_out_what_is_ruined(tiny_folder, sentence_pairs, tmp_path):
    good, ruined = (
        shutil.copytree(tiny_folder.path, tmp_path / name) for name in ("good", "ruined")
    )
    weights = load_file(ruined / "model.safetensors")
    torch.manual_seed(1)
    noise = {name: torch.randn_like(each) for name, each in weights.items()}
    save_file(noise, ruined / "model.safetensors")
    sources = [source for source, _ in sentence_pairs[:8]]
    translations = [each.text for each in Translator.load(good, "cpu").translate_all(sources)]
    files = tmp_path / "valid.en", tmp_path / "valid.fr"
    for path, lines in zip(files, (sources, translations), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    line = average_models(
        [ruined, good],
        tmp_path / "soup",
        greedy=True,
        valid_source=files[0],
        valid_target=files[1],
        device="cpu",
    )
    assert f"took {good}" in line
    assert "average of 1 of 2 models, BLEU 100.00" in line


def test_an_average_names_who_made_its_models(tiny_folder, tmp_path):
    paths = []
    for name, about in (("one", "- Made by: A"), ("two", "- Made by: B"), ("three", "")):
        path = shutil.copytree(tiny_folder.path, tmp_path / name)
        folder = read_folder(path)
        write_description(path, replace(folder, facts=replace(folder.facts, about=about)), 1)
        paths.append(path)
    average_models(paths, tmp_path / "mean", device="cpu")
    assert read_folder(tmp_path / "mean").facts.about == "- Made by: A\n\n- Made by: B"
