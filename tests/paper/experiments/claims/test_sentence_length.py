import pytest
from tests.paper.stand_in_runs import make_run_all

from dragoman.cli.verb_table import add_verbs
from dragoman.errors import OptionError
from dragoman.evaluation.bleu import corpus_bleu
from dragoman.models.families import TransformerOptions
from dragoman.paper.experiments.claims import sentence_length as length
from dragoman.paper.experiments.claims.sentence_length import (
    POSITIONS,
    SYSTEMS,
    Curve,
    LengthOptions,
    score_buckets,
)
from dragoman.paper.tasks.joined_lines import count_words
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.training.configuration import RunOptions


def options_in(folder, **more):
    return LengthOptions(**{
        "max_words": 12, "num_within": 3, "num_beyond": 1, "lines": 150, "lines_per_bucket": 4,
        "vocabulary_size": 400, "runs": WorkOptions(work=str(folder), device="cpu"),
    } | more)  # fmt: skip


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Give a folder in which lines are made and prepared only once."""
    return tmp_path_factory.mktemp("work")


@pytest.fixture
def plans(monkeypatch):
    """Let plain LSTMs forget all but the first four words, and all others translate rightly."""
    seen = []

    def tell(plan):
        lines = plan.corpus.texts.test_reference.read_text(encoding="utf-8").splitlines()
        if plan.name == "length-seq2seq":
            lines = [" ".join(line.split()[:4]) for line in lines]
        return {"translations": tuple(lines), "num_updates": 5}

    monkeypatch.setattr(length, "run_all", make_run_all(tell, seen))
    return seen


def test_the_bottleneck_is_seen_where_there_is_one(plans, work):
    experiment = length.run(options_in(work), str)
    table = experiment.table("families")
    lost = dict(zip(table.column("system"), table.column("lost up to 9–12 words"), strict=True))
    assert lost.pop("plain LSTM") > 20
    assert lost == pytest.approx(dict.fromkeys(lost, 0.0), abs=1e-9)
    assert len(lost) == 3
    assert experiment.table("positions").column("positions") == list(POSITIONS)
    told = " ".join(experiment.findings)
    assert "plain LSTM: " in told
    assert "falls by" in told
    assert "Beyond the lengths of training" in told
    (plot,) = experiment.plots
    assert [len(panel.series) for panel in plot.panels] == [4, len(POSITIONS)]
    assert len(plans) == 4 + len(POSITIONS)


def test_the_budget_is_the_same_and_lines_are_translated_whole(plans, work):
    length.run(options_in(work, max_steps=50, position_steps=20), str)
    for plan in plans:
        said = dict(zip(plan.flags[::2], plan.flags[1::2], strict=True))
        steps = "20" if "--positions" in said else "50"
        assert (said["--max-steps"], said["--batch-tokens"]) == (steps, "1500")
        assert plan.is_whole


def test_only_what_is_wanted_is_trained(plans, work):
    options = options_in(work, systems=("transformer",), position_steps=0)
    experiment = length.run(options, str)
    assert [plan.name for plan in plans] == ["length-transformer"]
    assert len(experiment.plots[0].panels) == 1


def test_seeds_are_averaged(work, monkeypatch):
    def tell(plan):
        lines = plan.corpus.texts.test_reference.read_text(encoding="utf-8").splitlines()
        return {"translations": tuple(lines if plan.seed == 1 else ["nothing"] * len(lines))}

    monkeypatch.setattr(length, "run_all", make_run_all(tell, []))
    options = options_in(work, systems=("luong",), position_steps=0, seeds=("1", "2"))
    experiment = length.run(options, str)
    (row,) = experiment.table("families").rows
    assert row[4:8] == pytest.approx((50.0,) * 4, abs=1.0)
    (series,) = experiment.plots[0].panels[0].series
    assert series.deviation == pytest.approx([70.7] * 4, abs=1.5)


def test_lines_are_written_once_and_as_asked_for(work):
    options = options_in(work)
    folder = length._make_lines(options, work)
    before = (folder / "train.fr").stat().st_mtime_ns
    assert length._make_lines(options, work) == folder
    assert (folder / "train.fr").stat().st_mtime_ns == before
    longest = max(count_words(line) for line in (folder / "train.fr").read_text().splitlines())
    assert longest == 12
    assert length._make_lines(options_in(work, lines=160), work) != folder


def test_every_position_scheme_of_the_transformer_is_there():
    hint = TransformerOptions.__annotations__["positions"]
    # Marian's sinusoids are the paper's but for wavelengths a few percent longer.
    assert set(hint.__args__) == {*POSITIONS, "marian"}


def test_every_flag_is_one_of_the_command():
    from dragoman.cli.flags import Parser, given_flags

    parser = Parser(prog="dragoman")
    add_verbs(parser.add_subparsers(parser_class=Parser))
    for plan in length._plan(LengthOptions(), None):
        words = ["train", "--source", "a", "--target", "b", "--out", "c", *plan.flags]
        given = given_flags(parser.parse(words), RunOptions)
        assert given["training"]["max_steps"] in (LengthOptions().max_steps,
                                                  LengthOptions().position_steps)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"systems": ("lstm",)}, "--systems is “lstm”: there are seq2seq"),
        ({"positions": ("some",)}, "--positions is “some”: there are sinusoidal"),
        ({"seeds": ()}, "--seeds is empty"),
        ({"num_within": 1}, "--num-within is 1: give ≥ 2, to compare them"),
        ({"num_beyond": -1}, "--num-beyond is -1: give ≥ 0"),
        ({"max_words": 11}, "--max-words is 11: give ≥ 12, three for each bucket"),
        ({"lines_per_bucket": 0}, "--lines-per-bucket is 0: give ≥ 1"),
        ({"position_steps": -1}, "--position-steps is -1: give ≥ 0"),
    ],
)
def test_options_are_checked(given, complaint):
    with pytest.raises(OptionError, match=complaint):
        LengthOptions(**given)


@pytest.mark.slow
def test_all_families_and_schemes_are_trained_from_end_to_end(tmp_path):
    options = options_in(
        tmp_path, systems=tuple(SYSTEMS), max_steps=2, position_steps=1, batch_tokens=200
    )
    experiment = length.run(options, str)
    assert len(experiment.table("families").rows) == len(SYSTEMS)
    assert len(experiment.table("positions").rows) == len(POSITIONS)
    assert not [each for each in experiment.findings if each.startswith("Missing")]


def test_buckets_are_scored_one_by_one():
    references = ["the first line is here", "the second line is there too",
                  "a third line is long gone", "and a fourth never came at all"]  # fmt: skip
    translations = [*references[:2], "nothing", references[3]]
    whole, half = score_buckets(translations, references, 2)
    assert whole == pytest.approx(100)
    assert half == corpus_bleu(translations[2:], [references[2:]]) < 100


def test_a_curve_falls_from_the_first_bucket_to_the_last_within():
    curve = Curve(title="some", is_scheme=False, runs=(), scores=((50, 40, 5), (70, 50, 15)))
    assert curve.means == [60, 45, 10]
    assert curve.deviations == pytest.approx([200**0.5, 50**0.5, 50**0.5])
    assert curve.fall(2) == 15
    assert curve.fall(3) == 50


def test_a_single_seed_has_no_deviation():
    assert Curve(title="some", is_scheme=True, runs=(), scores=((1.0, 2.0),)).deviations is None
