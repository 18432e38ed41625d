"""Table 1: the counted columns come out exactly, the measured ones are there."""

import pytest

from dragoman.errors import OptionError
from dragoman.paper.experiments.tables.complexity import ComplexityOptions, count_chain, run
from dragoman.paper.experiments.tables.layers import list_layers

SMALL = ComplexityOptions(
    max_length=256, max_width=128, width=64, length=64, window=16, repeats=1, device="cpu"
)


@pytest.fixture(scope="module")
def experiment():
    return run(SMALL, lambda _: None)


def test_counted_exponents_are_the_published_orders(experiment):
    exponents = experiment.table("exponents")
    assert exponents.column("layer") == [
        "self-attention", "recurrent", "convolutional", "self-attention (restricted)",
    ]  # fmt: skip
    assert exponents.numbers("operations ∝ n^") == pytest.approx([2, 1, 1, 1], abs=0.1)
    assert exponents.numbers("operations ∝ d^") == pytest.approx([1, 2, 2, 1], abs=1e-6)


def test_memory_of_attention_grows_faster_than_of_the_others(experiment):
    attention, *others = experiment.table("exponents").numbers("peak memory ∝ n^")
    assert attention > 1.3
    assert others == pytest.approx([1, 1, 1], abs=0.2)


def test_operations_cross_at_n_equal_d(experiment):
    crossover = experiment.table("crossover")
    assert crossover.column("ratio of operations") == crossover.column("n/d") == [1.0, 2.0, 4.0]


def test_only_recurrence_waits_for_itself():
    for kind in list_layers(3, 16):
        one, two, four = (count_chain(kind, length) for length in (16, 32, 64))
        if kind.name == "recurrent":
            assert four - two == 2 * (two - one) > 0
        else:
            assert one == two == four


def test_everything_is_measured(experiment):
    measured = experiment.table("measurements")
    assert len(measured.rows) == 4 * (3 + 2)
    assert min(measured.numbers("time (ms)")) > 0
    notes = " ".join(note for table in experiment.tables for note in table.notes)
    assert "X10:" in notes
    assert "X20:" in notes


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_length": 64}, "--max-length is 64: give ≥ 128"),
        ({"window": 1}, "--window is 1: give ≥ 2"),
        ({"kernel_size": 4}, "--kernel-size is 4: give an odd number ≥ 3"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(OptionError, match=message):
        ComplexityOptions(**options)
