"""Layers of options, and what a resumed run may change."""

import pytest
import torch

from dragoman.errors import OptionError
from dragoman.options import to_plain
from dragoman.training.configuration import (
    RunOptions,
    resolve_auto_batch,
    resolve_corpus,
    resolve_options,
    resumed_options,
)


def test_later_layers_win():
    file = {"model": {"num_heads": 2, "dropout": 0.2}}
    flags = {"model": {"dropout": 0.4}}
    name, options = resolve_options("tiny", file, flags, 1000)
    assert name == "tiny"
    assert (options.model.model_dim, options.model.num_heads) == (128, 2)
    assert options.model.dropout == 0.4
    assert options.training.label_smoothing == 0.1


@pytest.mark.parametrize(
    ("pairs", "name", "dropout"),
    [(5000, "small", 0.3), (300_000, "small", 0.3), (700_000, "base", 0.2),
     (2_000_000, "base", 0.1), (4_500_000, "big", 0.3), (36_000_000, "big", 0.1)],
)  # fmt: skip
def test_auto_follows_the_corpus(pairs, name, dropout):
    on_a_card = {"training": {"device": "cuda"}}
    chosen, options = resolve_options("auto", {}, on_a_card, pairs)
    assert (chosen, options.model.dropout) == (name, dropout)


def test_auto_is_lighter_on_a_cpu():
    assert resolve_options("auto", {"training": {"device": "cpu"}}, {}, 29_000)[0] == "tiny"
    assert resolve_options("auto", {"training": {"device": "mps"}}, {}, 29_000)[0] == "small"
    has_card = torch.cuda.is_available() or torch.backends.mps.is_available()
    assert resolve_options("auto", {}, {}, 29_000)[0] == ("small" if has_card else "tiny")


def test_a_shorter_run_of_a_recipe_that_ends_warms_up_as_long_a_part_of_it():
    def warmup(preset, **said):
        return resolve_options(preset, {"training": said}, {}, 10)[1].training.warmup_steps

    assert warmup("small") == 800
    assert warmup("small", max_steps=2000) == 200
    assert warmup("small", max_steps=3) == 1
    assert warmup("small", max_steps=2000, warmup_steps=7) == 7
    assert warmup("small", max_steps=2000, schedule="inverse-sqrt") == 800
    assert warmup("tiny", max_steps=2000) == 2000


def test_flags_win_over_auto():
    _, options = resolve_options("auto", {}, {"model": {"dropout": 0.0}}, 5000)
    assert options.model.dropout == 0.0


def test_ready_made_subwords_have_the_size_they_have():
    _, options = resolve_options("paper-base", {}, {"text": {"subwords": "x.model"}}, 5000)
    assert options.text.vocabulary_size is None


def test_corpus_options_are_known_before_the_preset():
    found = resolve_corpus({"corpus": {"max_length": 9}}, {"corpus": {"valid_pairs": 3}})
    assert (found.max_length, found.valid_pairs) == (9, 3)


def test_learned_positions_must_reach():
    with pytest.raises(OptionError, match="only 256 positions"):
        resolve_options("tiny", {"model": {"positions": "learned", "max_positions": 256}}, {}, 10)


def test_a_family_brings_its_recipe():
    name, options = resolve_options("auto", {}, {"model": {"family": "luong"}}, 10)
    assert (name, options.model.family, options.training.clip_norm) == ("luong", "luong", 1.0)
    name, options = resolve_options("auto", {"model": {"family": "transformer"}}, {}, 10)
    assert (name, options.model.family) == ("tiny", "transformer")


@pytest.mark.parametrize(("preset", "family"), [("tiny", "luong"), ("luong", "transformer")])
def test_a_recipe_is_for_one_family(preset, family):
    with pytest.raises(OptionError, match=f"the family is {family}, but the preset {preset} is a"):
        resolve_options(preset, {}, {"model": {"family": family}}, 10)


def test_a_recipe_s_vocabulary_size_is_not_for_other_units():
    _, options = resolve_options("nano", {}, {"text": {"units": "words"}}, 10)
    assert options.text.vocabulary_size is None
    for said in ({}, {"text": {"units": "subwords"}}):
        _, options = resolve_options("nano", {}, said, 10)
        assert options.text.vocabulary_size == 2048
    _, options = resolve_options("paper-rnnsearch", {}, {"text": {"units": "words"}}, 10)
    assert options.text.vocabulary_size == 30_000


def test_options_of_another_family_are_refused_by_name():
    with pytest.raises(OptionError, match="“decoder_attention” belongs to transformer"):
        resolve_options("bytenet", {}, {"model": {"decoder_attention": "feedback"}}, 10)


@pytest.mark.parametrize("family", ["gnmtt", ["gnmt"], 3])
def test_a_family_that_is_not_there_is_refused_by_name(family):
    with pytest.raises(OptionError, match="options: unknown family “"):
        resolve_options("auto", {"model": {"family": family}}, {}, 10)


def test_resumed_run_keeps_its_family():
    saved = to_plain(RunOptions())
    with pytest.raises(OptionError, match="--family is gnmt, but the run to resume has transf"):
        resumed_options(saved, {"model": {"family": "gnmt"}})
    with pytest.raises(OptionError, match="“kernel_size” belongs to bytenet"):
        resumed_options(saved, {"model": {"kernel_size": 3}})
    assert resumed_options(saved, {"model": {"key_dim": None}}) == RunOptions()


def test_resumed_run_may_get_other_limits_only():
    saved = to_plain(RunOptions())
    options = resumed_options(saved, {"training": {"max_steps": None, "max_epochs": 3}})
    assert (options.training.max_steps, options.training.max_epochs) == (None, 3)
    with pytest.raises(OptionError, match=r"--warmup-steps is 7, but the run to resume has 4000"):
        resumed_options(saved, {"training": {"warmup_steps": 7}})


def test_automatic_batches_keep_the_recipe_and_leave_its_parts_open():
    auto = {"training": {"batch_tokens": "auto", "seed": 3}}
    _, recipe = resolve_options("big", {}, {}, 10)
    _, options = resolve_options("big", {}, auto, 10)
    assert recipe.training.accumulate is not None
    assert options.training.batch_tokens == recipe.training.batch_tokens
    assert (options.training.accumulate, options.training.seed) == (None, 3)
    file = {"training": {"batch_tokens": 777}}
    _, options = resolve_options("big", file, auto, 10)
    assert (options.training.batch_tokens, options.training.accumulate) == (777, None)
    _, options = resolve_options("big", auto, {"training": {"accumulate": 5}}, 10)
    assert options.training.accumulate == 5
    for plain in ({}, {"training": {"batch_tokens": 5}}, {"training": 3}):
        assert resolve_auto_batch(plain) == plain


def test_resumed_run_may_be_divided_otherwise():
    saved = to_plain(RunOptions())
    auto = {"training": {"batch_tokens": "auto", "parallel": "shard"}}
    options = resumed_options(saved, auto).training
    assert (options.accumulate, options.parallel) == (None, "shard")
    assert options.batch_tokens == RunOptions().training.batch_tokens


def test_updates_have_at_least_one_part():
    with pytest.raises(OptionError, match=r"training\.accumulate is 0: must be positive, or off"):
        resolve_options("tiny", {}, {"training": {"accumulate": 0}}, 10)
