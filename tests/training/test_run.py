"""Whole runs: exact resume, limits, divergence, fine-tuning, and what is refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece
import torch
from benchmarks.attacks.mutations import strip_digests
from safetensors.torch import load_file
from tests.models.variants import ALL, ALL_BY_TURNS
from tests.training.same_runs import assert_same_files, assert_same_run, last_checkpoint

from dragoman.cli.command import main
from dragoman.data.store import clean_text, store
from dragoman.decoding.confidence import CONFIDENCE_FILE, read_calibration
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, FolderError, OptionError, TrainingError
from dragoman.evaluation import calibration
from dragoman.evaluation.bleu import build_metric
from dragoman.files import locked
from dragoman.folder import read_folder
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.options import to_plain
from dragoman.training import loop, preparation
from dragoman.training import run as run_module
from dragoman.training import run_setup as beginning
from dragoman.training.checkpoints import checkpoint
from dragoman.training.checkpoints.checkpoint import Progress, list_checkpoints
from dragoman.training.configuration import resolve_options
from dragoman.training.learning_rate_finder import find_learning_rate
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.preparation import RunRequest
from dragoman.training.run import InterruptedRunError, _open_run, resume_run, start_run
from dragoman.training.run_setup import describe_run
from dragoman.training.stopping import FEW_UPDATES
from dragoman.training.updates.distributed import Workers


def test_snapshots_are_kept_and_change_nothing(tmp_path, run, small):
    small["training"] |= {"max_steps": 6}
    plain = run(tmp_path / "plain", small)
    small["training"] |= {"snapshots": True}
    kept = run(tmp_path / "kept", small)
    names = ["step-00000001.safetensors", "step-00000002.safetensors", "step-00000005.safetensors"]
    assert sorted(path.name for path in (kept / "snapshots").iterdir()) == names
    assert not (plain / "snapshots").exists()
    assert_same_files(last_checkpoint(plain), last_checkpoint(kept), ("model", "optimiser"))
    first, second = (load_file(kept / "snapshots" / name) for name in names[:2])
    assert any((first[name] != second[name]).any() for name in first)


@pytest.mark.parametrize(
    "stop_after", [3, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (4, 7))]
)
def test_resumed_equals_uninterrupted_bit_for_bit(tmp_path, run, small, said, stop_after):
    small["training"] |= {"ema_decay": 0.9, "accumulate": 2, "max_steps": 11, "clip_norm": 1.0}
    whole = run(tmp_path / "whole", small)
    small["training"]["max_steps"] = stop_after
    parts = run(tmp_path / "parts", small)
    torch.rand(100)  # whatever else happens between must not matter
    resume_run(parts, {"training": {"max_steps": 11}}, said.append)
    assert last_checkpoint(parts).name == last_checkpoint(whole).name == "step-00000011"
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts))
    if stop_after == 4:  # another limit also means another validation, which may be the best
        assert_same_files(whole, parts, ("model",))


@pytest.mark.parametrize(
    "chosen",
    [
        {"optimiser": "schedule-free", "schedule": "constant"},
        pytest.param({"optimiser": "muon", "ema_decay": 0.9}, marks=pytest.mark.slow),
        pytest.param({"schedule": "cosine", "ema_decay": 0.9}, marks=pytest.mark.slow),
        pytest.param({"schedule": "warmup-stable-decay", "ema_decay": 0.9}, marks=pytest.mark.slow),
    ],
    ids=lambda chosen: "-".join(map(str, chosen.values())),
)
def test_every_optimiser_and_schedule_resumes_bit_for_bit(
    tmp_path, run, small, said, events, chosen
):
    small["training"] |= {"batch_tokens": 1500, "max_steps": 9, "warmup_steps": 3} | chosen
    whole = run(tmp_path / "whole", small)
    small["training"]["max_epochs"] = 1
    parts = run(tmp_path / "parts", small)
    assert last_checkpoint(parts).name < "step-00000009"
    torch.rand(100)
    resume_run(parts, {"training": {"max_epochs": None}}, said.append)
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts))
    last_rate = events(parts, "update")[-1]["learning_rate"]
    assert (last_rate == 0.0) == (chosen.get("schedule") in ("cosine", "warmup-stable-decay"))


def test_a_schedule_free_run_leaves_its_mean(tmp_path, run, small):
    small["training"] |= {"optimiser": "schedule-free", "schedule": "constant", "max_steps": 4}
    small["training"] |= {"average_checkpoints": 1, "best_by": "loss", "peak_learning_rate": 0.01}
    out = run(tmp_path / "out", small)
    model, mean, trained = (
        load_file(path / f"{name}.safetensors")
        for path, name in (
            (out, "model"),
            (last_checkpoint(out), "average"),
            (last_checkpoint(out), "model"),
        )
    )
    for name, each in model.items():
        assert torch.equal(each, mean[name]), name
    assert any(not torch.equal(each, trained[name]) for name, each in model.items())


def test_the_end_of_a_falling_rate_stays_where_it_is(tmp_path, run, small, said):
    small["training"] |= {"schedule": "cosine", "warmup_steps": 3}
    out = run(tmp_path / "out", small)
    with pytest.raises(OptionError, match="--max-steps is 20, but the learning rate of the run to"):
        resume_run(out, {"training": {"max_steps": 20}}, said.append)
    resume_run(out, {"training": {"max_steps": 8}}, said.append)


@pytest.mark.parametrize("name", ALL_BY_TURNS)
def test_every_family_resumes_bit_for_bit(tmp_path, run, small, said, name):
    options = ALL[name]
    small["model"] = to_plain(replace(options, dropout=0.1))
    small["corpus"]["max_length"] = 30
    small["training"] |= {"max_steps": 4, "validate_every": 2}
    small["search"] = {"max_extra_tokens": 2}
    preset = {"transformer": "tiny"}.get(options.family, options.family)
    whole = run(tmp_path / "whole", small, preset=preset)
    small["training"]["max_steps"] = 3
    parts = run(tmp_path / "parts", small, preset=preset)
    torch.rand(100)
    resume_run(parts, {"training": {"max_steps": 4}}, said.append)
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts), ("model", "optimiser"))
    same = [Translator.load(each).folder.options for each in (whole, parts)]
    assert same[0] == same[1] == replace(options, dropout=0.1)


def test_resume_crosses_the_end_of_an_epoch(tmp_path, run, small, said, events):
    small["training"] |= {"batch_tokens": 1500, "max_steps": 9}
    whole = run(tmp_path / "whole", small)
    small["training"]["max_steps"] = 4
    parts = run(tmp_path / "parts", small)
    resume_run(parts, {"training": {"max_steps": 9}}, said.append)
    assert events(parts, "update")[-1]["epoch"] >= 1
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts), ("model", "optimiser"))


@pytest.mark.slow
def test_a_mixed_run_resumes_bit_for_bit(tmp_path, run, small, said, events):
    small["training"] |= {"batch_tokens": 1500, "max_steps": 9}
    plain = run(tmp_path / "plain", small)
    small["corpus"]["mix"] = [0.5]
    whole = run(tmp_path / "whole", small)
    assert events(whole, "update")[-1]["epoch"] > events(plain, "update")[-1]["epoch"] > 0
    small["training"]["max_steps"] = 4
    parts = run(tmp_path / "parts", small)
    resume_run(parts, {"training": {"max_steps": 9}}, said.append)
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts), ("model", "optimiser"))


@pytest.mark.slow
def test_a_run_with_bpe_dropout_resumes_bit_for_bit(tmp_path, run, small, said, events):
    small["training"] |= {"batch_tokens": 1500, "max_steps": 9}
    plain = run(tmp_path / "plain", small)
    small["text"]["bpe_dropout"] = 0.2
    whole = run(tmp_path / "whole", small)
    assert events(whole, "update")[-1]["epoch"] > 0
    losses = [events(out, "validation")[0]["loss"] for out in (plain, whole)]
    assert losses[0] != losses[1]
    small["training"]["max_steps"] = 4
    parts = run(tmp_path / "parts", small)
    resume_run(parts, {"training": {"max_steps": 9}}, said.append)
    assert_same_files(last_checkpoint(whole), last_checkpoint(parts), ("model", "optimiser"))


def test_a_tempered_run_goes_as_its_corpora(tmp_path, run, small):
    """One corpus alone has nothing to be tempered against."""
    plain = run(tmp_path / "plain", small)
    small["corpus"]["mix_temperature"] = 5.0
    tempered = run(tmp_path / "tempered", small)
    assert "mix_temperature = 5.0" in (tempered / "config.toml").read_text()
    assert_same_files(last_checkpoint(plain), last_checkpoint(tempered), ("model",))


def test_bpe_dropout_of_other_subwords_is_refused(tmp_path, run, small, said, corpus):
    path = tmp_path / "unigram.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the small dog sees a house"] * 20),
        model_prefix=str(path.with_suffix("")),
        **{"vocab_size": 300, "hard_vocab_limit": False, "byte_fallback": True},
        **{"pad_id": 3, "minloglevel": 4},
    )
    small["text"] = {"subwords": str(path), "bpe_dropout": 0.1}
    with pytest.raises(OptionError, match=r"^bpe_dropout: the subwords are not byte pairs"):
        run(tmp_path / "out", small)
    asked = RunRequest(out=tmp_path / "dry", files=corpus, config=small, preset="tiny")
    with pytest.raises(OptionError, match=r"^bpe_dropout: the subwords are not byte pairs"):
        describe_run(asked, said.append)


def test_seed_decides_everything(tmp_path, run, small):
    first, second = run(tmp_path / "a", small), run(tmp_path / "b", small)
    assert_same_files(last_checkpoint(first), last_checkpoint(second), ("model",))
    small["training"]["seed"] = 2
    third = run(tmp_path / "c", small)
    with pytest.raises(AssertionError):
        assert_same_files(last_checkpoint(first), last_checkpoint(third), ("model",))


def test_run_leaves_a_model_that_translates(tmp_path, run, small, events):
    small["training"] |= {"max_steps": 700, "validate_every": 350, "peak_learning_rate": 0.005}
    small["training"] |= {"log_every": 100, "warmup_steps": 100}
    small["model"] |= {"model_dim": 32, "feed_forward_dim": 64, "dropout": 0.0}
    out = run(tmp_path / "out", small)
    assert events(out, "validation")[-1]["bleu"] > 60
    translator = Translator.load(out)
    assert translator.translate("un deux trois").text == "one two three"
    assert read_folder(out).facts.source_language == "fr"
    assert "validation" in (out / "README.md").read_text()


def test_padding_is_reported(tmp_path, run, small, events):
    out = run(tmp_path / "out", small)
    assert all(0 <= each["padding_share"] < 0.5 for each in events(out, "update"))


@pytest.mark.parametrize(
    ("limit", "why"),
    [
        ({"max_steps": 3}, "3 updates done"),
        ({"max_steps": None, "max_epochs": 1}, "1 passes over the corpus done"),
        ({"max_steps": None, "max_minutes": 0.01, "patience": None}, "0.01 minutes passed"),
        ({"max_steps": 500, "patience": 1, "peak_learning_rate": 1e-9}, "no better validation"),
    ],
)
def test_limits(tmp_path, run, small, events, limit, why, capsys):
    small["training"] |= limit
    out = run(tmp_path / "out", small)
    (end,) = events(out, "end")
    assert why in end["why"]
    is_short = "minutes" in why and end["step"] < FEW_UPDATES
    assert ("the model has hardly learnt anything" in capsys.readouterr().err) == is_short
    assert (out / "model.safetensors").exists()


def test_nan_goes_back_with_a_lower_rate_and_recovers(
    tmp_path, run, small, events, monkeypatch, capsys
):
    calls = []
    plain = TrainingStep.forward

    def spoilt(self, batch):
        calls.append(1)
        return plain(self, batch) * (float("nan") if len(calls) == 7 else 1.0)

    monkeypatch.setattr(TrainingStep, "forward", spoilt)
    out = run(tmp_path / "out", small)
    (divergence,) = events(out, "divergence")
    assert divergence["back_to"] == 4
    assert "nan" in divergence["why"]
    rates = {each["step"]: each["learning_rate"] for each in events(out, "update")}
    assert rates[8] == pytest.approx(0.5 * 8 / 20 * 0.005)
    weights = load_file(out / "model.safetensors")
    assert all(torch.isfinite(each).all() for each in weights.values())
    assert "going back to step 4 with the learning rate times 0.5" in capsys.readouterr().err


def test_diverging_run_gives_up_clearly_and_keeps_the_good_checkpoint(
    tmp_path, run, small, monkeypatch
):
    plain = TrainingStep.forward

    def spoilt(self, batch):
        return plain(self, batch) * float("nan")

    monkeypatch.setattr(TrainingStep, "forward", spoilt)
    with pytest.raises(TrainingError, match=r"giving up.*step-00000000.*--peak-learning-rate"):
        run(tmp_path / "out", small)
    assert list_checkpoints(tmp_path / "out" / "checkpoints")


def test_rising_loss_counts_as_divergence(tmp_path, run, small, monkeypatch, events):
    monkeypatch.setattr(loop, "DIVERGED_NATS", -10.0)
    with pytest.raises(TrainingError, match="the loss rose from"):
        run(tmp_path / "out", small)
    assert len(events(tmp_path / "out", "divergence")) == loop.MAX_FALLBACKS


def test_fine_tuning_starts_from_the_models_weights(tmp_path, run, small, said):
    first = run(tmp_path / "first", small)
    tuned = {"training": {"max_steps": 1, "peak_learning_rate": 1e-12, "device": "cpu"}}
    tuned["corpus"] = small["corpus"]
    second = run(tmp_path / "second", tuned, start_from=first)
    before, after = (load_file(each / "model.safetensors") for each in (first, second))
    for name, value in before.items():
        torch.testing.assert_close(value, after[name], atol=1e-6, rtol=0)
    assert (first / "subwords.model").read_bytes() == (second / "subwords.model").read_bytes()


def test_fine_tuning_keeps_its_own_subwords(tmp_path, run, small):
    first = run(tmp_path / "first", small)
    small["text"]["vocabulary_size"] = 400
    with pytest.raises(OptionError, match="brings its own subwords"):
        run(tmp_path / "second", small, start_from=first)


def test_fine_tuning_may_drop_other_merges(tmp_path, run, small):
    first = run(tmp_path / "first", small)
    small["text"]["bpe_dropout"] = 0.1
    second = run(tmp_path / "second", small, start_from=first)
    assert read_folder(second).config["text"]["bpe_dropout"] == 0.1
    assert (first / "subwords.model").read_bytes() == (second / "subwords.model").read_bytes()


def test_separate_subwords_and_untied_embeddings(tmp_path, run, small):
    small["text"] |= {"joint": False}
    small["model"] |= {"tied_embeddings": "target"}
    out = run(tmp_path / "out", small)
    assert (out / "source.model").exists()
    assert (out / "target.model").exists()
    assert Translator.load(out).translate("un").text is not None


def test_prepared_corpus_is_shared(tmp_path, run, small, monkeypatch):
    store = tmp_path / "store"
    run(tmp_path / "a", small, store=store)
    times = {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}
    run(tmp_path / "b", small, store=store)
    assert times == {path: path.stat().st_mtime_ns for path in store.rglob("*") if path.is_file()}


def test_dry_run_says_all_and_does_nothing(tmp_path, corpus, small, said):
    request = RunRequest(out=tmp_path / "out", files=corpus, preset="tiny", config=small)
    describe_run(request, said.append)
    assert not (tmp_path / "out").exists()
    text = "\n".join(said)
    _, options = resolve_options("tiny", small, {}, 280)
    model = build_model(options.model, Vocabulary(320, 320, 2, 0))
    assert f"parameters: {count_parameters(model):,}" in text
    assert "model_dim = 16" in text
    assert re.search(r"memory: \d+\.\d+ GB", text)


def test_folder_of_another_run_is_left_alone(tmp_path, run, small):
    out = run(tmp_path / "out", small)
    before = (out / "model.safetensors").read_bytes()
    with pytest.raises(FolderError, match="holds another run; give --resume"):
        run(out, small)
    assert (out / "model.safetensors").read_bytes() == before


def test_folder_with_something_else_is_left_alone(tmp_path, run, small):
    (tmp_path / "thesis.txt").write_text("three years")
    with pytest.raises(FolderError, match="already holds something else"):
        run(tmp_path, small)
    assert (tmp_path / "thesis.txt").read_text() == "three years"


def test_a_run_without_a_checkpoint_says_so(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    shutil.rmtree(out / "checkpoints")
    with pytest.raises(FolderError, match="has no checkpoint to go on from"):
        resume_run(out, {"training": {"max_steps": 20}}, said.append)


def test_damaged_run_file_is_named(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    (out / "run.json").write_text("x")
    with pytest.raises(FolderError, match=r"run\.json: damaged"):
        resume_run(out, {}, said.append)


def test_fine_tuning_keeps_the_models_shape(tmp_path, run, small):
    first = run(tmp_path / "first", small)
    other = {"model": {"model_dim": 32}}
    with pytest.raises(OptionError, match=r"--model-dim is 32, but --from .* brings its own shape"):
        run(tmp_path / "second", other, start_from=first)


def test_equal_scores_are_decided_by_the_loss():
    progress = Progress(best_value=0.0, best_loss=2.0)
    assert progress.is_better(0.0, 1.9)
    assert not progress.is_better(0.0, 2.0)
    assert progress.is_better(0.1, 9.0)
    assert Progress().is_better(0.0, 9.0)


def test_nothing_to_resume(tmp_path, said):
    with pytest.raises(FolderError, match="holds no run to resume"):
        resume_run(tmp_path / "none", {}, said.append)


def test_resuming_with_another_model_is_refused(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    with pytest.raises(OptionError, match=r"--model-dim is 32, but the run to resume has 16"):
        resume_run(out, {"model": {"model_dim": 32}}, said.append)


# Damage elsewhere


def test_a_store_cut_in_half_is_not_trained_on(tmp_path, whole, said):
    out = shutil.copytree(whole, tmp_path / "out")
    run_facts = json.loads((out / "run.json").read_text())
    del run_facts["digest"]
    (out / "run.json").write_text(json.dumps(run_facts | {"store": str(out / "store")}))
    for name in ("train.source.ids", "train.index"):
        path = out / "store" / name
        raw = path.read_bytes()
        path.write_bytes(raw[: len(raw) // 16 * 8])
        with pytest.raises(
            FolderError, match=rf"{re.escape(str(path))}: is damaged \(it has .*--sto"
        ):
            resume_run(out, {"training": {"max_steps": 20}}, said.append)
        path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
        with pytest.raises(
            FolderError, match=rf"{re.escape(str(path))}: is damaged \(block 1 of 1"
        ):
            resume_run(out, {"training": {"max_steps": 20}}, said.append)
        path.write_bytes(raw)
    resume_run(out, {"training": {"max_steps": 9}}, said.append)


def test_a_lost_store_can_be_prepared_again(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    shutil.rmtree(out / "store")
    with pytest.raises(
        FolderError, match="have it prepared again by “dragoman train” with --store"
    ):
        resume_run(out, {"training": {"max_steps": 9}}, said.append)
    run(tmp_path / "other", small, store=out / "store")
    resume_run(out, {"training": {"max_steps": 9}}, said.append)
    assert last_checkpoint(out).name == "step-00000009"


def test_changed_run_file_is_named(tmp_path, whole, said):
    out = shutil.copytree(whole, tmp_path / "out")
    raw = (out / "run.json").read_text()
    for spoilt in (raw.replace("store_key", "store_kex"), raw.replace("/store", "/stosh"), "[]"):
        (out / "run.json").write_text(spoilt)
        with pytest.raises(FolderError, match=r"run\.json: damaged"):
            resume_run(out, {}, said.append)


def test_other_subwords_are_named(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    small["text"]["vocabulary_size"] = 330
    other = run(tmp_path / "other", small)
    shutil.copy(other / "subwords.model", out)
    with pytest.raises(FolderError, match=r"subwords.model: damaged, or of another model"):
        resume_run(out, {}, said.append)
    strip_digests(out)
    with pytest.raises(FolderError, match="its subwords are damaged, or others than those of the"):
        resume_run(out, {}, said.append)


def test_a_damaged_log_is_no_obstacle(tmp_path, whole, said, events):
    out = shutil.copytree(whole, tmp_path / "out")
    with (out / "metrics.jsonl").open("ab") as log:
        log.write(b'5\n[]\n{"step": "x"}\n\xff\x00{"step"')
    resume_run(out, {}, said.append)
    assert [each["step"] for each in events(out, "update")] == [2, 4, 6, 8]


# Kills: every state of the folder that one may leave


class KilledError(BaseException):
    """Stands for a kill: nothing catches it, and what it leaves is as after one."""


def kill_before(monkeypatch, module, name, number=1):
    """Let a kill come before the nth call of a function."""
    calls = []
    plain = getattr(module, name)

    def fatal(*arguments, **options):
        calls.append(1)
        if len(calls) == number:
            raise KilledError
        return plain(*arguments, **options)

    monkeypatch.setattr(module, name, fatal)


@pytest.mark.parametrize(
    ("module", "name", "number"),
    [
        (clean_text, "write_facts", 1),  # before store.json
        (clean_text, "write_facts", 2),  # before text.json
        (clean_text, "_set_aside", 1),
        (beginning, "learn_subwords", 1),
        (preparation, "_learn_vocabularies", 1),
        (preparation, "write_facts", 1),  # within the subwords' folder
        (beginning, "store_ids", 1),
        (store, "_write_ids", 2),
        (store, "write_facts", 1),
        (run_module, "_write_initial_checkpoint", 1),
        (run_module, "write_description", 1),
        (run_module, "save_checkpoint", 1),
        (checkpoint, "write_facts", 1),
        (run_module, "write_facts", 1),  # before run.json
    ],
)
def test_a_kill_while_preparing_is_no_obstacle(
    tmp_path, run, small, whole, said, monkeypatch, module, name, number
):
    out = tmp_path / "out"
    small["training"] |= {"ema_decay": 0.9}
    kill_before(monkeypatch, module, name, number)
    with pytest.raises(KilledError):
        run(out, small)
    monkeypatch.undo()
    with pytest.raises(FolderError, match="holds no run to resume; leave --resume out to start"):
        resume_run(out, {}, said.append)
    run(out, small)
    assert_same_run(whole, out)
    assert not (out / ".preparing").exists()


def test_a_kill_after_the_run_file_leaves_a_run(tmp_path, run, small, whole, said, monkeypatch):
    out = tmp_path / "out"
    small["training"] |= {"ema_decay": 0.9}
    kill_before(monkeypatch, run_module, "_continue_run")
    with pytest.raises(KilledError):
        run(out, small)
    monkeypatch.undo()
    (out / ".preparing").touch()  # had the kill come a moment earlier
    (out / ".run.json.4194999.new").touch()
    with pytest.raises(FolderError, match="holds another run; give --resume"):
        run(out, small)
    resume_run(out, {}, said.append)
    assert_same_run(whole, out)
    assert not {".preparing", ".run.json.4194999.new"} & {each.name for each in out.iterdir()}


def test_what_kills_left_beside_does_not_make_a_folder_foreign(tmp_path, run, small):
    out = tmp_path / "out"
    (out / "store").mkdir(parents=True)
    for name in (".learning-rate.json.4194999.new", "store/.store.json.4194999.new", ".lock"):
        (out / name).touch()
    run(out, small)
    left = [each.name for each in out.rglob(".*")]
    assert left == []


@pytest.mark.parametrize(
    ("module", "name", "number"),
    [
        (run_module, "find_readable", 1),
        (run_module, "average_weights", 1),
        (run_module, "put_weights", 1),
        (run_module, "write_weights", 2),  # the average, after the best of the validations
        (run_module, "write_description", 3),
        (run_module, "write_description", 4),
        (run_module, "fits_int8", 1),
        (run_module, "format_time", 1),  # after the last file
    ],
)
@pytest.mark.parametrize("kind", ["kill", "term"])
def test_the_end_can_be_cut_off_anywhere(
    tmp_path, run, small, said, events, capsys, monkeypatch, corpus, module, name, number, kind
):
    small["training"] |= {"ema_decay": 0.9, "best_by": "loss", "max_steps": 8}
    small["training"] |= {"peak_learning_rate": 0.2, "warmup_steps": 1, "seed": 3, "kernels": "off"}
    whole, out = run(tmp_path / "whole", small), tmp_path / "out"
    assert read_folder(whole).facts.weights.startswith("average")
    plain, calls = getattr(module, name), []

    def cut_off(*arguments, **options):
        calls.append(1)
        if len(calls) == number and kind == "kill":
            raise KilledError
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(*arguments, **options)

    stopped = {"kill": KilledError, "term": InterruptedRunError}[kind]
    if (name, kind) == ("format_time", "term"):
        stopped = KeyboardInterrupt
    monkeypatch.setattr(module, name, cut_off)
    with pytest.raises(stopped):
        run(out, small)
    monkeypatch.undo()
    if stopped is InterruptedRunError:
        assert "stopped at step 8; nothing is lost\ngo on with: " in capsys.readouterr().err
        assert len(events(out, "stop")) == 1
    resume_run(out, {}, said.append)
    assert_same_run(whole, out)


@pytest.mark.slow
def test_runs_killed_at_random_moments_end_with_the_same_bytes():
    script = Path(__file__).parents[2] / "benchmarks" / "attacks" / "kills.py"
    words = [sys.executable, str(script), "--kills", "8", "--seed", "2"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    counts = json.loads(found.stdout)
    assert sum(counts["hits"].values()) >= 8
    assert counts["failures"] == []


# Two at once


def test_a_second_run_in_the_same_folder_is_refused(tmp_path, run, small, whole, said, corpus):
    out = shutil.copytree(whole, tmp_path / "out")
    with locked(out):
        for start in (lambda: run(out, small), lambda: resume_run(out, {}, said.append)):
            with pytest.raises(
                FolderError, match=f"out: in use by process {os.getpid()} on .* sinc"
            ):
                start()
        asked = RunRequest(out=out, files=corpus, preset="tiny", config=small)
        with pytest.raises(FolderError, match="in use by process"):
            find_learning_rate(asked, said.append)
    assert not (out / ".lock").exists()


def test_the_folder_is_locked_while_training(tmp_path, run, small, monkeypatch):
    seen = []
    monkeypatch.setattr(
        run_module, "train", lambda *_: seen.append((tmp_path / "out" / ".lock").exists()) or "x"
    )
    monkeypatch.setattr(run_module, "_is_interrupted", lambda *_: False)
    run(tmp_path / "out", small)
    assert seen == [True]


def test_only_the_first_worker_locks(tmp_path, monkeypatch, said):
    other = Workers(rank=1, num_workers=2)
    monkeypatch.setattr(Workers, "all_reduce_max", lambda _, *values: values)
    monkeypatch.setattr(run_module, "_continue_run", lambda *_, **__: said.append("trained"))
    with locked(tmp_path / "out"):
        resume_run(tmp_path / "out", {}, said.append, other)
    assert said == ["trained"]


def test_a_store_that_is_being_prepared_is_waited_for(tmp_path, corpus, small):
    shared, told = tmp_path / "store", []
    with ExitStack() as stack:
        stack.enter_context(locked(shared))

        def tell(line):
            told.append(line)
            if "waiting for process" in line:
                stack.close()

        request = RunRequest(out=tmp_path / "out", files=corpus, config=small, store=shared)
        start_run(replace(request, preset="tiny"), tell)
    assert ["waiting" in line for line in told] == [True, *[False] * (len(told) - 1)]
    assert last_checkpoint(tmp_path / "out").name == "step-00000008"


def test_lost_store_is_named(tmp_path, run, small, said):
    out = run(tmp_path / "out", small)
    shutil.rmtree(out / "store")
    with pytest.raises(FolderError, match="prepared corpus of the run is missing"):
        resume_run(out, {"training": {"max_steps": 20}}, said.append)


def test_finished_run_says_so_again(tmp_path, run, small, said, capsys):
    out = run(tmp_path / "out", small)
    resume_run(out, {}, said.append)
    assert "done: 8 updates done" in capsys.readouterr().err


def test_empty_corpus(tmp_path, corpus, small, said):
    (tmp_path / "empty").write_text("\n\n")
    files = replace(corpus, source=(tmp_path / "empty",), target=(tmp_path / "empty",))
    with pytest.raises(DataError, match=r"the corpus is empty: 0 of 2 pairs kept"):
        start_run(RunRequest(out=tmp_path / "out", files=files, config=small), said.append)


def test_tensorboard_events_are_written(tmp_path, run, small):
    small["training"]["tensorboard"] = True
    out = run(tmp_path / "out", small)
    (file,) = (out / "tensorboard").iterdir()
    assert b"validation/bleu" in file.read_bytes()


def test_restarted_workers_go_on_with_their_own_run_only(tmp_path, run, small, corpus, said):
    small["training"]["max_steps"] = 4
    out = tmp_path / "out"
    request = RunRequest(out=out, files=corpus, preset="tiny", config=small)
    start_run(request, said.append, Workers(launch="job7"))
    said.clear()
    again = Workers(launch="job7", is_restarted=True)
    start_run(request, said.append, again)
    assert said == ["going on from step 4"]
    for other in (Workers(launch="job8", is_restarted=True), Workers(launch="job7"), Workers()):
        with pytest.raises(FolderError, match="holds another run; give --resume"):
            start_run(request, said.append, other)


def test_a_folder_that_one_machine_does_not_see_is_named(tmp_path):
    with pytest.raises(FolderError, match="process 3 sees no run here; name a folder that all"):
        _open_run(tmp_path, {}, Workers(rank=3, num_workers=4))


def test_confidence_is_calibrated_at_the_end(tmp_path, run, small, monkeypatch, capfd):
    for name, value in (("FEWEST_LINES", 15), ("FEWEST_OF_EACH", 1)):
        monkeypatch.setattr(calibration, name, value)

    def fit_around_median(found, references, source):
        metric = build_metric("chrf")
        pairs = zip(found, references[0], strict=True)
        scores = [metric.sentence_score(each.text, [truth]).score for each, truth in pairs]
        monkeypatch.setattr(calibration, "GOOD_CHRF", sum(scores) / len(scores))
        return calibration.fit_confidence(found, references, source)

    monkeypatch.setattr(run_module, "fit_confidence", fit_around_median)
    small["training"] |= {"max_steps": 60, "validate_every": 30, "peak_learning_rate": 0.01}
    out = run(tmp_path / "out", small)
    told = capfd.readouterr().err
    assert "confidence calibrated on 20 validation lines" in told, told
    folder = read_folder(out)
    found = read_calibration(folder)
    assert (found.num_lines, found.fitted_on) == (20, "validation lines")
    assert 0 <= Translator.load(out, "cpu").translate("un deux").confidence <= 1
    main(["average", str(out), str(last_checkpoint(out)), "--out", str(tmp_path / "average")])
    assert not (tmp_path / "average" / CONFIDENCE_FILE).exists()


def test_too_few_validation_lines_leave_confidence_uncalibrated(tmp_path, run, small, capfd):
    out = run(tmp_path / "out", small)
    assert "confidence is not calibrated: validation lines" in capfd.readouterr().err
    assert not (out / CONFIDENCE_FILE).exists()
    assert Translator.load(out, "cpu").translate("un deux").confidence is None
