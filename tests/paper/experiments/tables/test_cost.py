"""Costs from hardware and days, and counted operations against closed forms."""

import pytest

from dragoman.errors import OptionError
from dragoman.paper.experiments.tables.cost import CostOptions, count_step, find_cost, run
from dragoman.paper.experiments.tables.parameters import count_by_formula
from dragoman.paper.experiments.tables.published import TABLE_3, TRAINING_TIMES

ROWS = {row.preset: row for row in TABLE_3}


@pytest.fixture(scope="module")
def experiment():
    return run(CostOptions(), lambda _: None)


def test_costs_follow_from_hardware():
    printed = [1.02e20, 2.32e19, 1.39e20, 9.59e18, 1.53e20, 2.05e19, 1.23e20, 8.18e20, 1.86e20,
               1.11e21, 7.67e19, 1.23e21, 3.28e18, 2.30e19]  # fmt: skip
    for time, operations in zip(TRAINING_TIMES, printed, strict=True):
        assert time.operations == pytest.approx(operations, rel=0.005)
        assert time.operations == pytest.approx(find_cost(time), rel=0.035)


@pytest.mark.parametrize("length", [5, 25])
def test_counted_operations_are_those_of_the_layers(length):
    row = ROWS["paper-base"]
    step = count_step("paper-base", 1000, length)
    width = row.model_dim
    # A product with a matrix takes two operations for each of its entries and each word; of the
    # rest only words, norms and biases are never multiplied that way.
    norms_and_biases = row.num_layers * (2 * (row.feed_forward_dim + width) + 10 * width)
    products = 2 * (count_by_formula(row, 1000) - norms_and_biases)
    attention = row.num_layers * 3 * 4 * length * width
    assert step.forward == pytest.approx(products + attention, rel=1e-3)
    assert step.both_ways == pytest.approx(3 * step.forward, rel=1e-3)
    assert step.parameters == count_by_formula(row, 1000)


def test_our_operations(experiment):
    counted = experiment.table("counted")
    assert counted.numbers("6·parameters·tokens") == pytest.approx(
        [6 * 63_045_632 * 2.5e9, 6 * 214_171_648 * 7.5e9]
    )
    assert counted.numbers("counted (operations)") == pytest.approx([9.5e17, 9.7e18], rel=0.01)
    assert counted.numbers("share of the published cost") == pytest.approx([0.29, 0.42], abs=0.005)
    assert counted.numbers("hours on one H200 at 40 % of 989·10¹²/s") == pytest.approx(
        [0.67, 6.8], rel=0.01
    )


def test_gains_and_ratios(experiment):
    assert experiment.table("gains").numbers("gain") == pytest.approx([2.37, 2.04, 1.24, 0.51])
    ratios = experiment.table("ratios")
    assert max(ratios.numbers("cost / base")) == pytest.approx(364, abs=0.5)
    assert max(ratios.numbers("cost / big")) == pytest.approx(52, abs=0.5)
    worse = [row for row in ratios.rows if row[2] > 100]
    assert worse
    assert all(row[3] < 0 for row in worse)


def test_notes_name_the_errors(experiment):
    notes = " ".join(note for table in experiment.tables for note in table.notes)
    assert all(f"{name}:" in notes for name in ("X4", "X5", "X6", "X17", "X19"))


def test_options_are_checked():
    with pytest.raises(OptionError, match="--sentence-length is 0: give ≥ 4"):
        CostOptions(sentence_length=0)
