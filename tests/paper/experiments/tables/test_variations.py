import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.paper.stand_in_runs import make_run_all

from dragoman.errors import OptionError
from dragoman.paper.experiments.tables import variations
from dragoman.paper.experiments.tables.parameters import count_by_formula
from dragoman.paper.experiments.tables.published import TABLE_3
from dragoman.paper.experiments.tables.variations import (
    ROWS,
    VariationsOptions,
    correlate_ranks,
    scale_row,
)
from dragoman.paper.training_runs.corpora import DataOptions
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.training.configuration import resolve_options


def options_in(folder, **more):
    return VariationsOptions(
        data=DataOptions(sentences=60, held_out=5), vocabulary_size=400,
        runs=WorkOptions(work=str(folder), device="cpu"), **more,
    )  # fmt: skip


def published(plan):
    row = ROWS[plan.name.removeprefix("variation-")]
    return {"loss": math.log(row.perplexity), "bleu": row.bleu + 0.1 * plan.seed}


@pytest.fixture
def plans(monkeypatch):
    seen = []
    monkeypatch.setattr(variations, "run_all", make_run_all(published, seen))
    return seen


@pytest.mark.usefixtures("plans")
def test_published_figures_correlate_with_themselves(tmp_path):
    experiment = variations.run(options_in(tmp_path, rows=tuple(ROWS)), str)
    table = experiment.table("variations")
    assert len(table.rows) == len(TABLE_3)
    assert table.numbers("perplexity") == pytest.approx(table.numbers("published perplexity"))
    assert table.numbers("± BLEU") == pytest.approx([0.1 / 2**0.5] * len(TABLE_3))
    told = [each for each in experiment.findings if each.startswith("Rank correlation")]
    assert len(told) == 2
    assert all(each.endswith("20 rows: +1.00.") for each in told)


@pytest.mark.usefixtures("plans")
def test_two_rows_are_not_ranked(tmp_path):
    experiment = variations.run(options_in(tmp_path, rows=("base", "e"), seeds=("1",)), str)
    assert not [each for each in experiment.findings if "ank correlation" in each]


def test_the_validation_set_is_scored(plans, tmp_path):
    variations.run(options_in(tmp_path, rows=("base",)), str)
    texts = plans[0].corpus.texts
    assert (texts.test_source, texts.test_reference) == (texts.valid_source, texts.valid_target)


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
@pytest.mark.parametrize("name", ROWS)
def test_rows_keep_heads_and_layers_and_lose_width(name, scale):
    row, small = ROWS[name], scale_row(ROWS[name], scale)
    assert (small.num_heads, small.num_layers, small.dropout) == (
        row.num_heads, row.num_layers, row.dropout,
    )  # fmt: skip
    assert small.model_dim * scale == row.model_dim
    assert small.key_dim * scale == row.key_dim


@pytest.mark.parametrize("name", ROWS)
def test_the_command_trains_what_the_table_says(name):
    plan = variations._plan(name, 1, None, VariationsOptions(rows=(name,), scale=8))
    said = dict(zip(plan.flags[::2], plan.flags[1::2], strict=True))
    widths = {each: int(said["--" + each.replace("_", "-")]) for each in variations._WIDTHS}
    _, options = resolve_options(plan.preset, {}, {"model": widths}, num_pairs=0)
    small = scale_row(ROWS[name], 8)
    model = options.model
    assert (model.num_heads, model.head_key_dim, model.head_value_dim) == (
        small.num_heads, small.key_dim, small.value_dim,
    )  # fmt: skip
    assert (model.model_dim, model.feed_forward_dim) == (small.model_dim, small.feed_forward_dim)
    assert model.dropout == small.dropout
    assert options.training.label_smoothing == small.smoothing
    import torch

    from dragoman.models.build import build_model, count_parameters
    from dragoman.models.interface import Vocabulary

    with torch.device("meta"):
        built = build_model(model, Vocabulary(300, 300, 2, 0))
    assert count_parameters(built) == count_by_formula(small, 300)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=12))
def test_rank_correlation_is_the_correlation_of_mean_ranks(pairs):
    def ranks(values):
        places = {value: [index for index, each in enumerate(sorted(values)) if each == value]
                  for value in values}  # fmt: skip
        return [np.mean(places[value]) for value in values]

    first, second = zip(*pairs, strict=True)
    found = correlate_ranks(first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(np.corrcoef(ranks(first), ranks(second))[0, 1])


@pytest.mark.parametrize(
    ("given_options", "complaint"),
    [
        ({"rows": ("f",)}, "--rows is “f”: there are base"),
        ({"scale": 32, "rows": ("base", "b-16")},
         "--scale is 32, but row “b-16” has key_dim = 16, which that does not divide"),
        ({"scale": 3}, "--scale is 3, but row “base” has model_dim = 512"),
        ({"scale": 0}, "--scale is 0: give ≥ 1"),
        ({"seeds": ("1", "1")}, "--seeds is 1 1"),
        ({"peak_learning_rate": 0.0}, "--peak-learning-rate is 0.0: give more than 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name(given_options, complaint):
    with pytest.raises(OptionError, match=complaint):
        VariationsOptions(**given_options)


def test_an_odd_width_is_refused_by_name():
    with pytest.raises(OptionError, match=r"row “a-1-head” would get an odd width \(1\)"):
        scale_row(ROWS["a-1-head"], 512)


@pytest.mark.slow
def test_rows_are_trained_from_end_to_end(tmp_path):
    options = options_in(tmp_path, rows=("base", "e"), seeds=("1",), max_steps=2, batch_tokens=200)
    table = variations.run(options, str).table("variations")
    assert all(value > 1 for value in table.numbers("perplexity"))
