"""Counts to the last unit, and the vocabularies that would fit the published ones."""

import pytest
import torch
from torch import nn

from dragoman.errors import OptionError
from dragoman.models.build import count_parameters
from dragoman.paper.experiments.tables.parameters import (
    MILLION,
    ParametersOptions,
    Range,
    count_by_formula,
    count_in_model,
    find_best_range,
    find_range,
    run,
)
from dragoman.paper.experiments.tables.published import TABLE_3

ROWS = {row.preset: row for row in TABLE_3}
# Exact count, with attention biases, first and last fitting vocabulary, at 37,000 subwords.
EXACT = {
    "paper-base": (63_045_632, 63_082_496, 39_841, 41_793),
    "paper-b-16": (55_967_744, 55_990_784, 39_993, 41_945),
    "paper-b-32": (58_327_040, 58_354_688, 39_291, 41_244),
    "paper-c-2-layers": (33_644_544, 33_656_832, 40_624, 42_577),
    "paper-c-4-layers": (48_345_088, 48_369_664, 39_256, 41_208),
    "paper-c-8-layers": (77_746_176, 77_795_328, 40_426, 42_378),
    "paper-c-256": (26_816_512, 26_834_944, 39_670, 43_576),
    "paper-c-1024": (163_815_424, 163_889_152, 40_599, 41_574),
    "paper-c-ff-1024": (50_450_432, 50_487_296, 41_004, 42_956),
    "paper-c-ff-4096": (88_236_032, 88_272_896, 39_469, 41_421),
    "paper-big": (214_171_648, 214_245_376, 35_368, 36_344),
}


@pytest.fixture(scope="module")
def experiment():
    said = []
    found = run(ParametersOptions(), said.append)
    assert said
    return found


@pytest.mark.parametrize("preset", EXACT)
def test_published_rows(preset):
    exact, with_bias, first, last = EXACT[preset]
    row = ROWS[preset]
    assert count_by_formula(row, 37_000) == exact
    assert count_by_formula(row, 37_000, attention_bias=True) == with_bias
    assert find_range(row) == Range(first=first, last=last)


@pytest.mark.parametrize("row", TABLE_3, ids=lambda row: row.preset)
def test_formula_equals_model(row):
    for bias in (False, True):
        assert count_in_model(row, 101, attention_bias=bias) == count_by_formula(
            row, 101, attention_bias=bias
        )


def test_heads_and_regularisation_change_nothing():
    counts = {
        count_by_formula(row, 37_000) for row in TABLE_3 if row.group in ("base", "(A)", "(D)")
    }
    assert counts == {63_045_632}
    assert count_by_formula(ROWS["paper-e"], 37_000) == 63_569_920


def test_formula_equals_pytorch():
    with torch.device("meta"):
        theirs = count_parameters(nn.Transformer(512, 8, 6, 6, 2048, batch_first=True))
    final_norms = 2 * 2 * 512
    assert theirs == 44_140_544
    ours = count_by_formula(ROWS["paper-base"], 0, attention_bias=True)
    assert theirs == ours + final_norms


@pytest.mark.parametrize("preset", EXACT)
@pytest.mark.parametrize("truncated", [False, True])
def test_ranges_are_all_and_only_what_fits(preset, truncated):
    row = ROWS[preset]
    fitting = find_range(row, truncated=truncated)

    def millions(size: int) -> int:
        count = count_by_formula(row, size)
        return count // MILLION if truncated else (count + MILLION // 2) // MILLION

    assert millions(fitting.first) == millions(fitting.last) == row.millions
    assert millions(fitting.first - 1) < row.millions < millions(fitting.last + 1)


def test_rows_without_a_figure_have_no_range():
    assert find_range(ROWS["paper-e"]) is None


def test_ten_of_eleven_rows_fit_together(experiment):
    rows = {row[0]: row[1:] for row in experiment.table("fits").rows}
    assert rows["rounded, no attention biases"] == (10, 11, 41_004, 41_208, "big")
    assert rows["rounded, attention biases"] == (10, 11, 40_932, 41_160, "big")
    assert rows["cut off, no attention biases"] == (10, 11, 41_980, 42_063, "big")


def test_best_range_by_trying_every_size():
    ranges = [Range(first=1, last=5), Range(first=4, last=9), Range(first=5, last=7)]
    most = max(sum(size in each for each in ranges) for size in range(12))
    sizes = [size for size in range(12) if sum(size in each for each in ranges) == most]
    assert find_best_range(ranges) == (3, Range(first=sizes[0], last=sizes[-1])) == (
        3, Range(first=5, last=5),
    )  # fmt: skip


def test_the_whole_table(experiment):
    counts = experiment.table("counts")
    assert counts.column("in the built model") == counts.column("by formula")
    assert len(counts.rows) == 20
    assert "0 of 11 rows" in experiment.findings[0]
    assert "In 20 of 20 rows" in experiment.findings[2]


def test_small_models(experiment):
    small = experiment.table("small-models")
    assert small.column("in the built model") == [11, 33, 33, 702_030]
    assert small.column("in the note") == [11, 33, 33, 702_030]
    assert small.column("with PyTorch's own cells") == [13, 35, 35, 704_078]
    for formula, count in zip(small.column("formula"), small.column("in the note"), strict=True):
        assert eval(formula.replace("·", "*")) == count


def test_a_fitting_vocabulary_is_reported():
    found = run(ParametersOptions(vocabulary_size=41_100), lambda _: None)
    assert "10 of 11 rows" in found.findings[0]


def test_vocabulary_must_be_there():
    with pytest.raises(OptionError, match="--vocabulary-size is 3: give ≥ 4"):
        ParametersOptions(vocabulary_size=3)
