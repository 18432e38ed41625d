import pytest
from tests.paper.stand_in_runs import make_run_all

from dragoman.errors import OptionError
from dragoman.paper.experiments.tables import systems
from dragoman.paper.experiments.tables.published import TABLE_2
from dragoman.paper.experiments.tables.systems import SYSTEMS, SystemsOptions, list_figures
from dragoman.paper.training_runs.corpora import DataOptions
from dragoman.paper.training_runs.experiment_runs import WorkOptions
from dragoman.presets import read_preset

BLEU = {"transformer": 40.0, "convs2s": 38.0, "seq2seq": 20.0}


def options_in(folder, **more):
    return SystemsOptions(
        data=DataOptions(sentences=60, held_out=5), vocabulary_size=400,
        runs=WorkOptions(work=str(folder)), **more,
    )  # fmt: skip


@pytest.fixture
def plans(monkeypatch):
    seen = []

    def tell(plan):
        return {"bleu": BLEU[plan.name] + plan.seed, "seconds": 10.0 * plan.seed}

    monkeypatch.setattr(systems, "run_all", make_run_all(tell, seen))
    return seen


def test_the_budget_is_the_same_for_all(plans, tmp_path):
    systems.compare_systems(options_in(tmp_path, systems=tuple(BLEU), max_steps=2000), str)
    assert len(plans) == 6
    shared = ("max-steps", "batch-tokens", "validate-every", "average-checkpoints", "patience")
    for flag in shared:
        assert len({plan.flags[plan.flags.index(f"--{flag}") + 1] for plan in plans}) == 1
    assert len({plan.corpus.key for plan in plans}) == 1
    assert len({plan.search for plan in plans}) == 1


@pytest.mark.parametrize("name", SYSTEMS)
def test_rate_and_warm_up_are_the_recipes_unless_the_budget_is_small(name):
    recipe = read_preset(SYSTEMS[name].preset)["training"]
    batch, steps = recipe["batch_tokens"], 4 * recipe["warmup_steps"]

    def said(**budget):
        plan = systems.plan_system(name, 1, None, SystemsOptions(**budget))
        words = dict(zip(plan.flags[::2], plan.flags[1::2], strict=True))
        return float(words["--peak-learning-rate"]), int(words["--warmup-steps"])

    rate, warmup = recipe["peak_learning_rate"], recipe["warmup_steps"]
    assert said(max_steps=steps, batch_tokens=batch) == (rate, warmup)
    assert said(max_steps=9 * steps, batch_tokens=9 * batch) == (rate, warmup)
    assert said(max_steps=steps // 2, batch_tokens=batch // 4) == (rate / 2, warmup // 2)


@pytest.mark.usefixtures("plans")
def test_the_table_is_in_order_beside_what_was_published(tmp_path):
    options = options_in(tmp_path, systems=("seq2seq", "convs2s", "transformer"))
    experiment = systems.run(options, str)
    table = experiment.table("systems")
    assert table.column("system") == ["Transformer", "ConvS2S", "plain LSTM"]
    assert table.numbers("BLEU") == [41.5, 39.5, 21.5]
    assert table.numbers("± deviation") == pytest.approx([0.5**0.5] * 3)
    assert table.column("published EN-DE BLEU") == [27.3, 25.16, None]
    assert experiment.seeds == (1, 2)
    told = " ".join(experiment.findings)
    assert "The Transformer is first, 2.00 BLEU ahead of ConvS2S: more than the deviation" in told
    assert "is last." in told


def test_another_order_is_told_as_it_is(plans, tmp_path, monkeypatch):
    monkeypatch.setattr(systems, "run_all", make_run_all(
        lambda plan: {"bleu": -BLEU[plan.name]}, plans))  # fmt: skip
    options = options_in(tmp_path, systems=tuple(BLEU), seeds=("1",))
    told = " ".join(systems.run(options, str).findings)
    assert "The Transformer is not first but number 3 of 3" in told
    assert "The plain LSTM is not last but number 1 of 3" in told


@pytest.mark.usefixtures("plans")
def test_one_seed_claims_no_certainty(tmp_path):
    options = options_in(tmp_path, systems=("transformer", "convs2s"), seeds=("1",))
    experiment = systems.run(options, str)
    assert any("a single seed cannot tell" in each for each in experiment.findings)
    assert experiment.table("systems").column("± deviation") == [None, None]


def test_a_failed_run_is_missing_and_told(plans, tmp_path, monkeypatch):
    def tell(plan):
        return None if (plan.name, plan.seed) == ("transformer", 2) else {"bleu": 30.0}

    monkeypatch.setattr(systems, "run_all", make_run_all(tell, plans))
    experiment = systems.run(options_in(tmp_path, systems=("transformer", "seq2seq")), str)
    seeds = dict(zip(experiment.table("systems").column("system"),
                     experiment.table("systems").column("seeds"), strict=True))  # fmt: skip
    assert seeds == {"Transformer": 1, "plain LSTM": 2}
    assert "Missing: transformer, seed 2 came to nothing (it broke)." in experiment.findings


@pytest.mark.usefixtures("plans")
def test_figures_are_flat_numbers(tmp_path):
    options = options_in(tmp_path, systems=("transformer",), seeds=("1", "3"))
    compared, _, _ = systems.compare_systems(options, str)
    figures = list_figures(compared, "some")
    assert figures["some_transformer_bleu_mean"] == pytest.approx(42.0)
    assert figures["some_transformer_bleu_deviation"] == pytest.approx(2**0.5)
    assert figures["some_transformer_seconds"] == pytest.approx(20.0)
    assert figures["some_transformer_parameters"] == 1000
    assert all(isinstance(value, int | float) for value in figures.values())


def test_every_system_has_a_recipe_and_every_published_name_a_row():
    names = {row.system for row in TABLE_2}
    for system in SYSTEMS.values():
        assert {"batch_tokens", "warmup_steps", "peak_learning_rate"} <= set(
            read_preset(system.preset)["training"]
        )
        assert system.published is None or system.published in names


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"systems": ("lstm",)}, "--systems is “lstm”: there are transformer"),
        ({"seeds": ("x",)}, "--seeds is x"),
        ({"max_steps": 0}, "--max-steps is 0: give ≥ 1"),
        ({"batch_tokens": 0}, "--batch-tokens is 0: give ≥ 1"),
    ],
)
def test_options_are_checked(given, complaint):
    with pytest.raises(OptionError, match=complaint):
        SystemsOptions(**given)


@pytest.mark.slow
def test_systems_are_trained_from_end_to_end(tmp_path):
    options = SystemsOptions(
        systems=("transformer", "seq2seq"), seeds=("1",), max_steps=2, batch_tokens=200,
        vocabulary_size=400, data=DataOptions(sentences=60, held_out=5),
        runs=WorkOptions(work=str(tmp_path), device="cpu"),
    )  # fmt: skip
    table = systems.run(options, str).table("systems")
    assert len(table.rows) == 2
    assert all(value > 1 for value in table.numbers("validation perplexity"))
