"""The series as the note prints it, the split, and the tables."""

import math

import numpy as np
import pytest
import torch

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.fibonacci import (
    NUM_NUMBERS,
    NUM_STEPS,
    PRINTED_INPUTS,
    VARIANTS,
    FibonacciOptions,
    make_series,
    run,
    split_series,
)


@pytest.fixture(scope="module")
def series():
    return make_series()


@pytest.fixture(scope="module")
def experiment():
    return run(FibonacciOptions(epochs=1, batch_size=200, seeds=2), lambda _: None)


def test_the_notes_numbers_come_out(series):
    printed = {
        1: "0.0000e+00", 2: "2.2664e-251", 3: "4.5327e-251", 4: "9.0654e-251", 5: "1.5865e-250",
        19: "1.5330e-247", 20: "2.4805e-247",
    }  # fmt: skip
    for step, text in printed.items():
        assert f"{series[step - 1]:.4e}" == text
        assert float(text) == PRINTED_INPUTS[step]


def test_series_is_fibonacci_between_0_and_1(series):
    assert len(series) == NUM_NUMBERS
    assert (series[0], series[-1]) == (0.0, 1.0)
    last = 1 / series[1] + 1
    assert last == pytest.approx(4.41236e250, rel=1e-5)
    for one, two, three in zip(series[3:], series[4:], series[5:], strict=False):
        assert three == pytest.approx(one + two + 1 / last, rel=1e-12)
    golden = (1 + math.sqrt(5)) / 2
    assert series[-1] / series[-2] == pytest.approx(golden)


def test_single_precision_loses_most_of_it(series):
    assert int((torch.tensor(series, dtype=torch.float32) == 0).sum()) == 983


def test_split_is_the_tutorials(series):
    train, test = split_series(series)
    assert (len(train.following), len(test.following)) == (826, 354)
    order = np.random.RandomState(13).permutation(1180)
    first = int(order[0])
    assert train.series[0].tolist() == series[first : first + NUM_STEPS]
    assert train.following[0].item() == series[first + NUM_STEPS]
    assert test.following[-1].item() == series[int(order[-1]) + NUM_STEPS]
    following = torch.cat([train.following, test.following])
    assert int((following > 1e-3).sum()) == 15


def test_errors(experiment):
    errors = experiment.table("errors")
    assert errors.column("model")[: len(VARIANTS)] == [variant.name for variant in VARIANTS]
    assert errors.column("parameters")[:5] == [11, 33, 33, 11, 33]
    rows = {row[0]: row for row in errors.rows}
    assert rows["predict the sum of the last two"][5] < 1e-30
    squares = [number**2 for number in make_series()[NUM_STEPS:]]
    train, test = rows["predict zero"][3], rows["predict zero"][5]
    assert (train * 826 + test * 354) / 1180 == pytest.approx(sum(squares) / 1180)
    assert rows["no attention, tanh output (the tutorial)"][7:] == (5.6314e-05, 2.6235e-05)
    assert rows["attention, the tutorial's form, tanh"][7:] == (5.3511e-05, 9.0534e-06)


def test_context_vector_adds_up(experiment):
    context = experiment.table("context")
    assert context.column("time step") == ["1", "2", "3", "4", "5", "19", "20", "c = Σ α h + b"]
    assert context.numbers("α in the note")[0] == -0.6759
    assert experiment.seeds == (1, 2)
    notes = " ".join(note for table in experiment.tables for note in table.notes)
    assert all(f"{name}:" in notes for name in ("X11", "X12", "X22"))


def test_one_seed_is_never_called_a_difference():
    found = run(FibonacciOptions(epochs=1, batch_size=400, seeds=1), lambda _: None)
    assert all("no difference beyond chance" in each for each in found.findings[:3])


def test_options_are_checked():
    with pytest.raises(OptionError, match="--epochs is 0: give ≥ 1"):
        FibonacciOptions(epochs=0)
    with pytest.raises(OptionError, match=r"--learning-rate is 0\.0: give a number > 0"):
        FibonacciOptions(learning_rate=0.0)
