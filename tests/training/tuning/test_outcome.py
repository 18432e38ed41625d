"""The end of a fine-tuning: the average that is chosen, and whole runs on a very small model."""

import json
import random
import shutil

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from tests.training.same_runs import MODEL_FILES, assert_same_files, last_checkpoint

from dragoman.data.corpus import CorpusFiles
from dragoman.decoding.quantise import write_int8
from dragoman.errors import OptionError
from dragoman.evaluation.compare import compare_systems
from dragoman.folder import read_folder
from dragoman.training.preparation import RunRequest
from dragoman.training.run import resume_run, start_run
from dragoman.training.run_setup import describe_run
from dragoman.training.tuning import outcome
from dragoman.training.tuning.outcome import (
    KEPT_GAIN,
    SHARES,
    TOLERATED_NATS,
    Change,
    choose_share,
    held_out,
    mix_weights,
)
from dragoman.weights import read_weights

WORDS = {"un": "1", "deux": "2", "trois": "three", "quatre": "four", "cinq": "five", "six": "6"}
LOSSES = st.lists(st.floats(0, 10), min_size=len(SHARES), max_size=len(SHARES))


@given(LOSSES, st.none() | LOSSES)
def test_the_chosen_share_keeps_its_promise(own, general):
    own = dict(zip(SHARES, own, strict=True))
    general = dict(zip(SHARES, general, strict=True)) if general else {}
    share = choose_share(own, general)
    assert own[share] <= own[1.0]
    if general:
        assert general[share] <= general[1.0] + TOLERATED_NATS
        assert all(own[share] <= own[each] for each in SHARES if general[each] <= general[1.0])
    else:
        gain = own[1.0] - min(own.values())
        assert own[1.0] - own[share] >= KEPT_GAIN * gain - 1e-9


def test_without_general_lines_the_share_is_as_large_as_can_be():
    own = {share: 1 + share**2 for share in SHARES}
    assert choose_share(own, {}) == 0.6
    assert choose_share(own, dict.fromkeys(SHARES, 2.0)) == 0.0
    assert choose_share(own, {share: 2 - share for share in SHARES}) == 1.0
    assert choose_share(dict.fromkeys(SHARES, 1.0), {}) == 1.0


def test_an_average_is_exact_at_its_ends():
    start, tuned = ({"a": torch.randn(5), "n": torch.tensor(each)} for each in (3, 5))
    assert mix_weights(start, tuned, 1.0) == start
    assert mix_weights(start, tuned, 0.0) == tuned
    half = mix_weights(start, tuned, 0.5)
    assert torch.allclose(half["a"], (start["a"] + tuned["a"]) / 2)
    assert (half["n"].item(), half["n"].dtype) == (4, torch.int64)


def test_a_change_for_the_worse_is_noticed():
    lines = held_out("lines", [("a", "one two three four five"), ("b", "six seven eight nine ten")])
    good, bad = list(lines.references), ["one two three four five", "six nine"]

    def change(before, after):
        systems = {"before": before, "after": after}
        compared = (compare_systems([good], systems, metric=each, num_trials=10, num_samples=10)
                    for each in ("bleu", "chrf"))  # fmt: skip
        return Change(lines=lines, comparisons=tuple(compared))

    assert change(good, bad).is_worse
    assert not change(bad, good).is_worse
    assert not change(good, good).is_worse
    assert next(change(bad, good).in_words()).startswith("lines (2): BLEU ")


# Whole runs


@pytest.fixture(scope="module")
def mine(tmp_path_factory):
    """Lines of somebody's own, in which some words are translated otherwise."""
    chance = random.Random(5)
    path = tmp_path_factory.mktemp("mine") / "mine.tsv"
    with path.open("w", encoding="utf-8") as file:
        for number in range(120):
            words = [chance.choice(list(WORDS)) for _ in range(chance.randint(1, 7))]
            file.write(f"{' '.join(words)} {number}\t{' '.join(map(WORDS.get, words))} {number}\n")
    return path


def request_of(whole, mine, out, **changes):
    settings = {"device": "cpu", "precision": "float32"} | changes.pop("training", {})
    settings = {"validate_every": 3, "max_steps": 9, "warmup_steps": 1, "log_every": 1} | settings
    return RunRequest(
        out=out, files=CorpusFiles(tsv=(mine,)), start_from=whole, config={"training": settings},
        **changes,
    )  # fmt: skip


@pytest.fixture(scope="module")
def tuned(tmp_path_factory, whole, mine):
    """A fine-tuning that nothing happened to, and what it said."""
    out, said = tmp_path_factory.mktemp("tuned") / "out", []
    start_run(request_of(whole, mine, out), said.append)
    return out, said


def test_general_text_is_remembered_and_measured(tuned, whole, events):
    out, said = tuned
    (line,) = (each for each in said if each.startswith("tuning: 108 pairs of yours, 12 more held"))
    num_general = int(line.split(" of ")[-1].split()[0])
    config = read_folder(out).config
    assert config["corpus"]["mix"] == [1.0, round(108 / num_general, 6)]
    assert config["model"]["dropout"] == 0.1
    own, general = events(out, "tuning")
    assert (own["num_lines"], general["num_lines"]) == (12, 20)
    assert {*own["metrics"]} == {"BLEU", "chrF2"}
    (average,) = events(out, "average")
    assert len(average["own"]) == len(average["general"]) == len(SHARES)
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "- your lines, held out: BLEU " in card
    assert "- general lines: BLEU " in card
    start, before = (read_weights(each / "model.safetensors") for each in (whole, out))
    assert start.keys() == before.keys()


def test_resumed_equals_uninterrupted(tuned, tmp_path, whole, mine):
    parts = tmp_path / "parts"
    start_run(request_of(whole, mine, parts, training={"max_epochs": 1, "batch_tokens": 600,
                                                       "schedule": "constant"}), print)  # fmt: skip
    once = tmp_path / "once"
    start_run(request_of(whole, mine, once, training={"batch_tokens": 600,
                                                      "schedule": "constant"}), print)  # fmt: skip
    torch.rand(9)
    resume_run(parts, {"training": {"max_epochs": None}}, print)
    config = (once / "config.toml").read_bytes()
    assert (parts / "config.toml").read_bytes() == config
    for name in MODEL_FILES:
        assert (parts / name).read_bytes() == (once / name).read_bytes(), name
    assert_same_files(last_checkpoint(parts), last_checkpoint(once), ("model", "optimiser"))


def test_ending_again_averages_no_further(tuned, tmp_path):
    out = shutil.copytree(tuned[0], tmp_path / "out")
    facts = json.loads((out / "run.json").read_text())
    del facts["digest"]
    (out / "run.json").write_text(json.dumps(facts | {"store": str(out / "store")}))
    before = (out / "model.safetensors").read_bytes()
    resume_run(out, {}, print)
    assert (out / "model.safetensors").read_bytes() == before


def test_a_worse_model_is_not_kept(tmp_path, whole, mine, monkeypatch, capsys, events):
    monkeypatch.setattr(outcome.Change, "is_worse", property(lambda _: True))
    out = tmp_path / "out"
    start_run(request_of(whole, mine, out, training={"max_steps": 2}), print)
    start = load_file(whole / "model.safetensors")
    kept = load_file(out / "model.safetensors")
    assert all(torch.equal(start[name], each) for name, each in kept.items())
    assert "so the folder has the weights of before" in "".join(capsys.readouterr())
    assert read_folder(out).facts.weights == "those of before: tuning made them worse"


def test_eight_bits_are_tuned_and_a_share_can_be_said(tmp_path, whole, mine):
    write_int8(read_folder(whole), tmp_path / "int8")
    out = tmp_path / "out"
    training = {"max_steps": 2, "start_share": 1.0, "peak_learning_rate": 0.01}
    start_run(request_of(tmp_path / "int8", mine, out, training=training), print)
    start = read_weights(tmp_path / "int8" / "model.safetensors")
    kept = load_file(out / "model.safetensors")
    assert all(torch.equal(start[name], each) for name, each in kept.items())
    assert not (out / "general").exists()  # eight bits remember no store


def test_general_files_are_mixed_in(tmp_path, whole, mine, corpus):
    lines = [
        each.read_text(encoding="utf-8").splitlines()
        for each in (corpus.source[0], corpus.target[0])
    ]
    path = tmp_path / "general.tsv"
    path.write_text(
        "".join(f"{one}\t{two}\n" for one, two in zip(*lines, strict=True)), encoding="utf-8"
    )
    out = tmp_path / "out"
    start_run(request_of(whole, mine, out, training={"max_steps": 2}, general=(path,)), print)
    assert (out / "general" / "valid.tsv").exists()
    assert len(read_folder(out).config["corpus"]["mix"]) == 2


def test_a_dry_run_plans_and_leaves_nothing(tmp_path, whole, mine, said):
    describe_run(request_of(whole, mine, tmp_path / "out"), said.append)
    assert any(line.startswith("tuning: at most 9 updates") for line in said)
    assert "preset: tuning; device: cpu" in said
    assert not (tmp_path / "out").exists()


def test_general_text_and_the_recipe_go_with_a_trained_model(tmp_path, corpus, whole, mine):
    asked = RunRequest(out=tmp_path / "out", files=corpus, general=(mine,))
    with pytest.raises(OptionError, match="--general is for fine-tuning: give --from"):
        start_run(asked, print)
    asked = RunRequest(out=tmp_path / "out", files=corpus, preset="tuning")
    with pytest.raises(OptionError, match="--preset tuning is for fine-tuning: give --from"):
        start_run(asked, print)
    asked = request_of(whole, mine, tmp_path / "out", preset="tiny", general=(mine,))
    with pytest.raises(OptionError, match="and no other --preset"):
        start_run(asked, print)
