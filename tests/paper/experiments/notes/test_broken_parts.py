"""Small models without one part each: what is trained, and what is left for the page."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.paper.stand_in_runs import make_run_all

from dragoman.errors import OptionError
from dragoman.options import read_toml
from dragoman.paper.experiments.notes import broken_parts
from dragoman.paper.experiments.notes.broken_parts import PARTS, BrokenOptions
from dragoman.paper.experiments.tables.published import TABLE_3
from dragoman.paper.training_runs.corpora import DataOptions
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.serving.page.broken_models import BrokenModels
from dragoman.training.configuration import resolve_options

BLEU = {part.name: 80.0 - 10 * place for place, part in enumerate(PARTS)}


def options_in(folder, **more):
    return BrokenOptions(
        models=str(folder / "models"), data=DataOptions(sentences=60, held_out=9),
        runs=WorkOptions(work=str(folder / "work"), device="cpu"), **more,
    )  # fmt: skip


@pytest.fixture
def plans(monkeypatch, tmp_path):
    """Runs that were never trained; each has left a folder with what only training needs."""
    seen = []
    stand_in = make_run_all(lambda plan: {"bleu": BLEU[plan.name.removeprefix("broken-")]}, seen)

    def run_all(wanted, options, say):
        outcomes, failures = stand_in(wanted, options, say)
        found = []
        for outcome in outcomes:
            folder = tmp_path / "runs" / outcome.plan.name
            (folder / "checkpoints").mkdir(parents=True)
            for name in ("dragoman.json", "model.safetensors", "run.json"):
                (folder / name).write_text(outcome.plan.name)
            found.append(replace(outcome, folder=folder))
        return found, failures

    monkeypatch.setattr(broken_parts, "run_all", run_all)
    monkeypatch.setattr(broken_parts, "_VOCABULARY", 400)
    return seen


def test_what_is_left_is_what_the_page_reads(plans, tmp_path):
    experiment = broken_parts.run(options_in(tmp_path), str)
    place = tmp_path / "models"
    told = BrokenModels(place).description
    assert [each["name"] for each in told["models"]] == [part.name for part in PARTS]
    assert [each["bleu"] for each in told["models"]] == list(BLEU.values())
    published = {each["name"]: each["published"] for each in told["models"]}
    rows = {row.preset: row for row in TABLE_3}
    assert published["one-head"]["bleu"] == rows["paper-a-1-head"].bleu
    assert published["no-mask"] is None
    assert len(told["examples"]) == 8
    assert sorted(path.name for path in (place / "whole").iterdir()) == [
        "dragoman.json", "model.safetensors",
    ]  # fmt: skip
    assert experiment.table("broken").numbers("BLEU") == list(BLEU.values())
    assert len(experiment.findings) == len(PARTS) - 1
    assert "With no scaling: 70.0 BLEU where the whole model has 80.0" in experiment.findings[0]
    assert len(plans) == len(PARTS)


def test_each_model_lacks_what_its_name_says(plans, tmp_path):
    broken_parts.run(options_in(tmp_path), str)
    shapes = {}
    for plan in plans:
        flags = dict(zip(plan.flags[::2], plan.flags[1::2], strict=True))
        config = read_toml(Path(flags["--config"]))
        _, options = resolve_options(plan.preset, config, {}, 60)
        shapes[plan.name.removeprefix("broken-")] = options.model
    whole = shapes["whole"]
    assert (whole.scaled, whole.residual, whole.decoder_mask) == (True, True, True)
    assert shapes["no-scaling"] == replace(whole, scaled=False)
    assert shapes["no-positions"] == replace(whole, positions="none")
    assert shapes["no-mask"] == replace(whole, decoder_mask=False)
    assert shapes["one-head"] == replace(whole, num_heads=1)
    assert shapes["no-residual"] == replace(whole, residual=False)
    assert shapes["no-attention"].family == "seq2seq"


@pytest.mark.usefixtures("plans")
def test_models_of_before_are_replaced(tmp_path):
    for _ in range(2):
        broken_parts.run(options_in(tmp_path), str)
        for path in (tmp_path / "runs").glob("*/*"):
            path.rmdir() if path.is_dir() else path.unlink()
        for path in (tmp_path / "runs").iterdir():
            path.rmdir()
    told = json.loads((tmp_path / "models" / "broken.json").read_text())
    assert len(told["models"]) == len(PARTS)


def test_options_are_checked(tmp_path):
    with pytest.raises(OptionError, match="--max-steps is 0"):
        options_in(tmp_path, max_steps=0)
    with pytest.raises(OptionError, match="--models is empty"):
        BrokenOptions(models="")
