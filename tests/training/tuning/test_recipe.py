"""The plan of a fine-tuning follows the sizes of its files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.store.store import open_store
from dragoman.options import from_plain, merge
from dragoman.presets import read_preset
from dragoman.training.configuration import RunOptions
from dragoman.training.tuning.recipe import (
    BATCHES,
    CPU_MINUTES,
    FEWEST_UPDATES,
    MOST_REPEATS,
    MOST_TOKENS,
    MOST_UPDATES,
    PASSES,
    RATE_BY_WIDTH,
    TuningCorpus,
    describe_tuning,
    measure_corpus,
    plan_tuning,
)

SIZES = st.integers(1, 10**8)


def corpus_of(*pairs, num_own=1, tokens=40):
    return TuningCorpus(pairs=pairs, tokens=[tokens * each for each in pairs], num_own=num_own)


def options_of(recipe):
    return from_plain(RunOptions, merge(read_preset("tuning"), recipe), place="plan")


@given(SIZES, st.none() | SIZES, st.integers(1, 4096), st.booleans())
def test_every_plan_is_valid_and_bounded(own, general, width, is_on_cpu):
    corpus = corpus_of(own, *([general] if general else []))
    options = options_of(plan_tuning(corpus, width, {}, is_on_cpu=is_on_cpu))
    training = options.training
    assert training.max_minutes == (CPU_MINUTES if is_on_cpu else None)
    assert training.peak_learning_rate == pytest.approx(RATE_BY_WIDTH / width, abs=1e-8)
    tokens = training.max_steps * training.batch_tokens
    assert tokens <= MOST_TOKENS + BATCHES[0] * FEWEST_UPDATES
    assert training.max_steps >= FEWEST_UPDATES
    assert training.max_steps <= MOST_UPDATES or training.batch_tokens == BATCHES[-1]
    if general:
        own_weight, weight = options.corpus.mix
        assert own_weight == 1
        assert weight * general <= own + 1e-6 * general
        assert weight <= MOST_REPEATS
    else:
        assert options.corpus.mix is None
    assert describe_tuning(corpus, options, 10)


def test_tokens_are_the_passes_over_the_mixture():
    plan = plan_tuning(corpus_of(2000, 20_000), 512, {}, is_on_cpu=False)
    tokens = plan["training"]["max_steps"] * plan["training"]["batch_tokens"]
    assert tokens == pytest.approx(PASSES * 2 * 2000 * 40, rel=0.01)
    assert plan["corpus"]["mix"] == [1.0, 0.1]


def test_what_the_user_says_of_batch_and_mixture_counts():
    said = {"training": {"batch_tokens": 160}, "corpus": {"mix": [1.0, 0.0]}}
    plan = plan_tuning(corpus_of(100, 100), 512, said, is_on_cpu=False)
    assert plan["training"]["max_steps"] == PASSES * 100 * 40 / 160
    said = {"corpus": {"mix_temperature": 5.0}}
    assert plan_tuning(corpus_of(100, 100), 512, said, is_on_cpu=False)["corpus"] == {}


def test_a_few_lines_are_a_handful_of_updates():
    plan = plan_tuning(corpus_of(36), 512, {}, is_on_cpu=True)
    assert FEWEST_UPDATES <= plan["training"]["max_steps"] < 20
    lines = describe_tuning(corpus_of(36), options_of(plan), 4)
    assert "4 held-out lines say little of what is gained" in lines[-1]
    assert "no general text" in lines[0]


def test_corpora_are_measured_each_by_itself(whole):
    pairs = open_store(whole / "store").train
    (count,), (tokens,) = (getattr(measure_corpus(pairs, 1), name) for name in ("pairs", "tokens"))
    assert count == len(pairs)
    assert tokens == pairs.num_tokens
