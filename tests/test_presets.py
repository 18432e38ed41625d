"""Recipes: all of them are valid, and the choice follows the size of the corpus."""

import pytest

from dragoman.errors import OptionError
from dragoman.options import from_plain
from dragoman.presets import (
    BY_CORPUS_SIZE,
    LARGEST,
    ON_A_CPU,
    choose_preset,
    preset_names,
    read_preset,
)
from dragoman.training.configuration import RunOptions

NAMES = [name for name in preset_names() if name != "auto"]


def test_auto_comes_first():
    assert preset_names()[0] == "auto"
    assert {"tiny", "small", "base", "big", "paper-base", "paper-big"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_is_valid(name):
    options = from_plain(RunOptions, read_preset(name), place=name)
    assert options != RunOptions() or name == "paper-base"


def test_paper_base_is_the_default_model():
    options = from_plain(RunOptions, read_preset("paper-base"), place="paper-base")
    default = RunOptions()
    assert (options.model, options.training, options.search) == (
        default.model, default.training, default.search,
    )  # fmt: skip


def test_paper_big_is_table_3():
    options = from_plain(RunOptions, read_preset("paper-big"), place="paper-big")
    model = options.model
    assert (model.model_dim, model.feed_forward_dim, model.num_heads) == (1024, 4096, 16)
    assert (model.dropout, options.training.max_steps) == (0.3, 300_000)
    assert options.training.average_checkpoints == 20


@pytest.mark.parametrize("name", NAMES)
def test_no_recipe_speaks_of_the_corpus(name):
    assert "corpus" not in read_preset(name)


def test_rows_hold_up_to_their_limit():
    limits = [limit for limit, _, _ in BY_CORPUS_SIZE]
    assert limits == sorted(limits)
    rows = [(0, *BY_CORPUS_SIZE[0][1:])]
    for (limit, *row), following in zip(
        BY_CORPUS_SIZE, [*(each[1:] for each in BY_CORPUS_SIZE[1:]), LARGEST], strict=True
    ):
        rows += [(limit - 1, *row), (limit, *following)]
    for num_pairs, name, dropout in rows:
        found, recipe = choose_preset(num_pairs)
        assert found == name
        assert recipe["model"]["dropout"] == dropout
        rest = {key: value for key, value in recipe["model"].items() if key != "dropout"}
        own = {key: value for key, value in read_preset(name)["model"].items() if key != "dropout"}
        assert rest == own


def test_a_cpu_gets_a_lighter_recipe_for_small_corpora():
    limit, name, _ = ON_A_CPU
    assert choose_preset(limit - 1, has_accelerator=False)[0] == name
    assert choose_preset(limit, has_accelerator=False) == choose_preset(limit)
    assert choose_preset(limit - 1)[0] != name


def test_models_grow_with_the_corpus():
    sizes = [choose_preset(num)[1]["model"]["model_dim"] for num in (10, 10**5, 10**6, 10**8)]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_unknown_recipe_suggests_the_nearest():
    with pytest.raises(OptionError) as caught:
        read_preset("paper-bas")
    assert str(caught.value) == "--preset: unknown preset “paper-bas”; did you mean “paper-base”?"


@pytest.mark.parametrize("name", ["auto", "zzz", "../presets/tiny"])
def test_what_is_no_recipe(name):
    with pytest.raises(OptionError, match="unknown preset"):
        read_preset(name)
