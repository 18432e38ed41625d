"""The experiment as a whole, small; what is counted is exact."""

import pytest

from dragoman.errors import OptionError
from dragoman.paper.experiments.notes.scoring_functions import ScoresOptions, run


@pytest.fixture(scope="module")
def experiment():
    options = ScoresOptions(max_key_dim=8, steps=3, seeds=2, length=32, repeats=1)
    return run(options, lambda _: None)


def test_heads_cost_the_same(experiment):
    heads = experiment.table("heads")
    assert heads.column("heads") == [1, 2, 4, 8, 16, 32]
    length, width = 32, 512
    products = 4 * 2 * length * width**2 + 4 * length**2 * width
    assert set(heads.numbers("operations")) == {products}
    assert set(heads.numbers("parameters")) == {4 * width**2}
    assert "are equal" in experiment.findings[2]


def test_additive_attention_keeps_a_vector_for_each_pair(experiment):
    costs = experiment.table("costs")
    assert costs.column("d_k") == [2, 8]
    narrow, wide = (mega * 1e6 for mega in costs.numbers("additive (MB)"))
    pairs = 32 * 32 * 4
    assert wide - narrow == pytest.approx(2 * 6 * pairs, rel=0.1)
    dot = costs.numbers("dot product (MB)")
    assert dot[0] == dot[1]


def test_tables_and_notes(experiment):
    assert len(experiment.table("entropy").rows) == 2 * 3
    assert len(experiment.table("accuracy").rows) == 2 * 3
    assert len(experiment.table("looks").rows) == 1 + 8
    assert experiment.seeds == (1, 2)
    notes = " ".join(note for table in experiment.tables for note in table.notes)
    for error in ("X1", "X2", "X3", "X7", "X8", "X13", "X14", "X21"):
        assert f"{error}:" in notes


def test_widths():
    assert ScoresOptions().key_dims == [2, 8, 32, 128, 512]
    assert ScoresOptions(max_key_dim=600).key_dims[-1] == 512


def test_options_are_checked():
    with pytest.raises(OptionError, match="--max-key-dim is 4: give ≥ 8"):
        ScoresOptions(max_key_dim=4)
