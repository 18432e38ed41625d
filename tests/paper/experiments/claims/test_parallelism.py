import pytest
import torch

from dragoman.errors import OptionError
from dragoman.paper.experiments.claims import parallelism as parallel
from dragoman.paper.experiments.claims.parallelism import Measured, ParallelOptions, make_words
from dragoman.paper.experiments.tables.systems import SYSTEMS


@pytest.mark.parametrize("length", [8, 16, 50])
def test_every_batch_has_as_many_words_as_fit(length):
    options = ParallelOptions(max_length=64, batch_tokens=200, vocabulary_size=30)
    batch = make_words(length, options, torch.device("cpu"), seed=1)
    assert 200 - 2 * length < batch.num_tokens <= 200
    assert batch.num_tokens == batch.num_places == 2 * batch.num_target_tokens
    assert batch.source.ids.shape == batch.target.ids.shape
    assert (batch.source.lengths == length).all()
    assert (batch.source.ids[:, -1] == parallel._EOS_ID).all()
    words = batch.source.ids[:, :-1]
    assert words.min() > parallel._PAD_ID
    assert words.max() < 30


def test_all_families_run_and_are_tabulated():
    options = ParallelOptions(
        max_length=16, batch_tokens=64, vocabulary_size=30, repeats=1, device="cpu"
    )
    experiment = parallel.run(options, str)
    table = experiment.table("parallel")
    assert len(table.rows) == len(SYSTEMS)
    assert table.column("8 words")
    assert all(value > 0 for value in table.numbers("16 words"))
    at_once, one_by_one = (
        {series.name for series in panel.series} for panel in experiment.plots[0].panels
    )
    titles = {system.title for system in SYSTEMS.values()}
    assert at_once == {"Transformer", "Transformer with experts", "ConvS2S", "ByteNet"}
    assert one_by_one == titles - at_once | {"Transformer"}


def test_the_exponent_is_that_of_the_measured_speeds(monkeypatch):
    def measure(name, options, _device, _say):
        power = -1.0 if name == "seq2seq" else 0.0
        return [
            Measured(name, 10, length, 1.0, 1000 * (length / 8) ** power)
            for length in options.lengths
        ]

    monkeypatch.setattr(parallel, "measure_family", measure)
    options = ParallelOptions(systems=("seq2seq", "transformer"), max_length=100, device="cpu")
    assert options.lengths == (8, 16, 32, 64)
    experiment = parallel.run(options, str)
    assert experiment.table("parallel").numbers("exponent") == pytest.approx([-1.0, 0.0])
    assert "Transformer keeps 100% of its speed, plain LSTM 12%" in experiment.findings[0]


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"systems": ("x",)}, "--systems is “x”: there are transformer"),
        ({"max_length": 15}, "--max-length is 15: give ≥ 16"),
        ({"batch_tokens": 511}, "--batch-tokens is 511: give ≥ 512, a pair of the longest"),
        ({"repeats": 0}, "--repeats is 0: give ≥ 1"),
        ({"vocabulary_size": 4}, "--vocabulary-size is 4: give ≥ 5"),
        ({"seeds": ("a",)}, "--seeds is a"),
    ],
)
def test_options_are_checked(given, complaint):
    with pytest.raises(OptionError, match=complaint):
        ParallelOptions(**given)
