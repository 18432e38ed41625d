import pytest
from tests.paper.stand_in_runs import make_run_all

from dragoman.errors import OptionError
from dragoman.paper.experiments.claims import model_size as scale
from dragoman.paper.experiments.claims.model_size import ScaleOptions
from dragoman.paper.training_runs.corpora import DataOptions
from dragoman.paper.training_runs.experiment_runs import WorkOptions


def options_in(folder, **more):
    return ScaleOptions(**{
        "widths": ("8", "16", "32", "64"), "pairs": ("20", "40", "80", "160"),
        "data": DataOptions(sentences=160, held_out=5), "vocabulary_size": 400,
        "runs": WorkOptions(work=str(folder), device="cpu"),
    } | more)  # fmt: skip


def width_of(plan):
    return int(plan.flags[plan.flags.index("--model-dim") + 1])


@pytest.fixture
def plans(monkeypatch):
    """Let the loss follow a law in the weights without words and in the corpus's tokens."""
    seen = []

    def tell(plan):
        width = width_of(plan)
        weights = 20 * width * width
        loss = 0.5 + 300 * weights**-0.9 + 50 * plan.corpus.num_tokens**-0.6
        words = plan.corpus.vocabulary_size * width
        return {"loss": loss, "num_parameters": weights + words}

    monkeypatch.setattr(scale, "run_all", make_run_all(tell, seen))
    return seen


def test_the_laws_of_models_and_corpora_are_found_again(plans, tmp_path):
    experiment = scale.run(options_in(tmp_path), str)
    laws = experiment.table("laws")
    assert laws.numbers("α") == pytest.approx([0.9, 0.6], abs=0.02)
    assert laws.numbers("points") == [4, 4]
    assert laws.numbers("deviation, nats") == pytest.approx([0, 0], abs=1e-3)
    assert len(plans) == 7
    assert "α between" in experiment.findings[0]
    losses = experiment.table("losses")
    assert losses.numbers("parameters without words (N)")[:4] == [
        20 * width**2 for width in (8, 16, 32, 64)
    ]


def test_corpora_are_the_beginning_of_one_another_with_the_same_subwords(plans, tmp_path):
    scale.run(options_in(tmp_path), str)
    corpora = sorted({plan.corpus.num_pairs: plan.corpus for plan in plans}.items())
    assert [num_pairs for num_pairs, _ in corpora] == [20, 40, 80, 160]
    texts = [corpus.texts.target.read_text().splitlines() for _, corpus in corpora]
    assert all(texts[-1][: len(each)] == each for each in texts)
    assert len({corpus.subwords.read_bytes() for _, corpus in corpora}) == 1
    assert {corpus.texts.source.suffix for _, corpus in corpora} == {".fr"}


def test_every_size_is_trained_once_for_each_seed(plans, tmp_path):
    scale.run(options_in(tmp_path, seeds=("1", "2")), str)
    sizes = [(width_of(plan), plan.corpus.num_pairs, plan.seed) for plan in plans]
    assert len(set(sizes)) == len(sizes) == 14


def test_a_failed_size_is_left_out_and_told(plans, tmp_path, monkeypatch):
    def tell(plan):
        width = width_of(plan)
        return None if width == 8 else {"loss": 1 / width, "num_parameters": 500 * width}

    monkeypatch.setattr(scale, "run_all", make_run_all(tell, plans))
    experiment = scale.run(options_in(tmp_path), str)
    assert len(experiment.table("losses").rows) == 6
    assert any(each.startswith("Missing: scale-8-wide") for each in experiment.findings)


def test_a_corpus_that_is_too_small_is_refused(tmp_path):
    texts = DataOptions(sentences=10, held_out=2).find(tmp_path)
    files = {name: str(path) for name, path in vars(texts).items()}
    options = options_in(tmp_path, data=DataOptions(**files))
    with pytest.raises(OptionError, match="--pairs is 160: the corpus has only 10"):
        scale.run(options, str)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"widths": ("16", "30")}, "--widths is 30: give multiples of 4"),
        ({"widths": ("16",)}, "--widths is 16: give at least two, to compare them"),
        ({"widths": ("16", "wide")}, "--widths is “wide”"),
        ({"pairs": ("0", "10")}, "--pairs is “0”"),
        ({"pairs": ("10", "10")}, "--pairs is “10” twice: name each once"),
        ({"pairs": ("10", "30000")}, "--pairs is 30000: --sentences is only 20000"),
        ({"max_steps": 0}, "--max-steps is 0: give ≥ 1"),
        ({"seeds": ()}, "--seeds is empty"),
    ],
)
def test_options_are_checked(given, complaint):
    with pytest.raises(OptionError, match=complaint):
        ScaleOptions(**given)


@pytest.mark.slow
def test_sizes_are_trained_from_end_to_end(tmp_path):
    options = options_in(tmp_path, widths=("8", "16"), pairs=("30", "60"), max_steps=2)
    table = scale.run(options, str).table("losses")
    assert len(table.rows) == 3
    assert all(value > 1 for value in table.numbers("loss, nats"))
