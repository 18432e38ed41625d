"""A budget becomes a plan: shape, updates and schedule that fit the minutes."""

import os
import shutil
import signal
import tomllib

import pytest
from tests.training.test_run import assert_same_run

from dragoman.training.budget import plan as plan_module
from dragoman.training.budget.plan import DEFAULT_CPU_MINUTES, find_budget
from dragoman.training.preparation import RunRequest
from dragoman.training.run import InterruptedRunError, resume_run, start_run
from dragoman.training.run_setup import describe_run
from dragoman.training.updates.update_planner import UpdatePlanner

TINY = {"model": {"model_dim": 16, "feed_forward_dim": 32, "num_heads": 2}}


@pytest.fixture
def request_of(corpus, tmp_path):
    """Make a request with few tokens of validation."""

    def make(name="out", preset="auto", **training):
        settings = {"device": "cpu", "precision": "float32", "log_every": 5} | training
        config = {"corpus": {"valid_pairs": 3}, "text": {"vocabulary_size": 320}}
        config |= {"training": settings, "search": {"max_extra_tokens": 2}}
        return RunRequest(out=tmp_path / name, files=corpus, config=config, preset=preset)

    return make


@pytest.fixture
def speed(monkeypatch):
    """Pretend that models have a certain speed, by their width."""

    def fix(tokens_per_second):
        def measure(_, options):
            return tokens_per_second * 128 / options.model.model_dim

        monkeypatch.setattr(plan_module._CandidateTimer, "_measure", measure)

    return fix


def plan_of(asked):
    told = []
    describe_run(asked, told.append)
    config = tomllib.loads(next(each for each in told if each.startswith("[")))
    return config, [each for each in told if each.startswith("plan:")]


@pytest.mark.parametrize(
    ("said", "minutes"),
    [
        ({}, DEFAULT_CPU_MINUTES),
        ({"max_minutes": 5.0}, 5.0),
        ({"max_minutes": "off"}, None),
        ({"max_steps": 100}, None),
        ({"max_minutes": 5.0, "max_steps": "off"}, None),
        ({"max_minutes": 5.0, "max_epochs": 3}, None),
        ({"max_minutes": 5.0, "patience": 3}, None),
        ({"max_minutes": 5.0, "schedule": "constant"}, None),
        ({"max_minutes": 5.0, "schedule": "warmup-stable-decay"}, 5.0),
        ({"max_minutes": 5.0, "objective": "reward"}, None),
        ({"max_minutes": 5.0, "optimiser": "schedule-free"}, None),
    ],
)
def test_budgets(said, minutes):
    said = {"training": said}
    assert find_budget("auto", said, has_accelerator=False, starts_anew=True) == minutes
    assert find_budget("auto", said, has_accelerator=False, starts_anew=False) is None


def test_a_gpu_and_named_recipes_are_planned_only_if_asked():
    assert find_budget("auto", {}, has_accelerator=True, starts_anew=True) is None
    assert find_budget("tiny", {}, has_accelerator=False, starts_anew=True) is None
    luong = {"model": {"family": "luong"}}
    assert find_budget("auto", luong, has_accelerator=False, starts_anew=True) is None
    asked = {"training": {"max_minutes": 3.0}}
    assert find_budget("tiny", asked, has_accelerator=True, starts_anew=True) == 3.0


def test_more_minutes_buy_more(request_of, speed):
    speed(20_000)
    plans = [plan_of(request_of(f"out-{each}", max_minutes=each)) for each in (1.0, 15.0, 4320.0)]
    widths = [config["model"]["model_dim"] for config, _ in plans]
    updates = [config["training"]["max_steps"] for config, _ in plans]
    assert widths == sorted(widths)
    assert all(100 < each < 20_000 for each in updates)
    for config, told in plans:
        training = config["training"]
        assert training["schedule"] == "cosine"
        assert training["warmup_steps"] < training["max_steps"] / 10
        assert 3 <= -(-training["max_steps"] // training["validate_every"]) <= 10
        assert len(told) >= 2
    assert "not known to help" in plans[2][1][-1]  # three days are more than the corpus is worth


def test_a_faster_machine_gets_more_updates(request_of, speed):
    found = []
    for tokens in (2_000, 8_000):
        speed(tokens)
        config, _ = plan_of(request_of(f"out-{tokens}", max_minutes=2.0))
        found.append(config["training"]["max_steps"] * config["training"]["batch_tokens"])
    assert found[1] > 2 * found[0]


def test_what_the_user_says_stays(request_of, speed):
    speed(20_000)
    asked = request_of(max_minutes=5.0, batch_tokens=3000, label_smoothing=0.2)
    asked.config["model"] = {"model_dim": 64, "num_heads": 2, "dropout": 0.25}
    config, _ = plan_of(asked)
    assert config["model"]["model_dim"] == 64
    assert config["model"]["dropout"] == 0.25
    assert config["training"]["batch_tokens"] == 3000
    assert config["training"]["label_smoothing"] == 0.2
    assert config["training"]["max_minutes"] == 5.0


def test_a_shape_that_the_user_gave_is_timed_once_and_has_the_rate_of_its_width(
    request_of, speed, monkeypatch
):
    speed(30_000)
    timed = []
    plain = plan_module._CandidateTimer.plan
    monkeypatch.setattr(
        plan_module._CandidateTimer, "plan", lambda *given: timed.append(given) or plain(*given)
    )
    asked = request_of(max_minutes=60.0)
    shape = {"num_encoder_layers": 4, "num_decoder_layers": 2, "model_dim": 192, "num_heads": 4}
    asked.config["model"] = shape | {"feed_forward_dim": 768}
    config, _ = plan_of(asked)
    assert len(timed) == 1
    assert config["training"]["peak_learning_rate"] == 0.003
    assert config["model"]["model_dim"] == 192


def test_a_named_recipe_keeps_its_shape_and_gets_a_schedule_that_fits(request_of, speed):
    speed(20_000)
    config, _ = plan_of(request_of(preset="tiny", max_minutes=3.0))
    assert config["model"]["model_dim"] == 128
    assert config["model"]["norm_position"] == "post"
    assert config["training"]["schedule"] == "cosine"
    assert config["training"]["warmup_steps"] < config["training"]["max_steps"] / 10


def test_a_named_recipe_with_a_long_warmup_gets_a_shorter_one(request_of, speed):
    speed(20_000)
    config, _ = plan_of(request_of(preset="paper-base", max_minutes=3.0, schedule="cosine"))
    assert config["model"]["model_dim"] == 512
    assert config["training"]["warmup_steps"] < config["training"]["max_steps"] / 10


def test_a_width_that_some_shapes_cannot_divide_is_planned_with_the_others(
    request_of, speed, monkeypatch
):
    speed(1e9)
    monkeypatch.setattr(plan_module, "FEW_PAIRS", 0)  # all shapes are candidates
    asked = request_of(max_minutes=5.0)
    asked.config["model"] = {"model_dim": 512, "num_encoder_layers": 2, "num_decoder_layers": 2}
    config, _ = plan_of(asked)
    assert config["model"]["model_dim"] == 512
    assert config["model"]["num_heads"] == 8


def test_without_minutes_a_cpu_says_what_it_plans_for(request_of, speed):
    speed(20_000)
    _, told = plan_of(request_of())
    assert f"made for {DEFAULT_CPU_MINUTES:g} minutes" in told[-1]
    assert "--max-minutes" in told[-1]


def stop_before(monkeypatch, update):
    """Ask the process to stop before it prepares an update."""
    plain, made = UpdatePlanner.make_update, []

    def make(self, *arguments):
        made.append(1)
        if len(made) == update:
            os.kill(os.getpid(), signal.SIGTERM)
        return plain(self, *arguments)

    monkeypatch.setattr(UpdatePlanner, "make_update", make)


def test_a_planned_run_stops_and_goes_on_as_if_it_had_not(
    request_of, speed, monkeypatch, events, tmp_path
):
    speed(400)
    asked, other = request_of("whole", max_minutes=1.0, ema_decay=0.9), tmp_path / "parts"
    asked.config["model"] = TINY["model"] | {"num_encoder_layers": 1, "num_decoder_layers": 1}
    monkeypatch.setattr(
        "dragoman.training.budget.time_budget.TOLERANCE", 1e9
    )  # however slow this machine is
    with monkeypatch.context() as patched:
        stop_before(patched, 1)
        with pytest.raises(InterruptedRunError):
            start_run(asked, print)
    shutil.copytree(asked.out, other)
    resume_run(asked.out, {}, print)
    with monkeypatch.context() as patched:
        stop_before(patched, 12)
        with pytest.raises(InterruptedRunError):
            resume_run(other, {}, print)
    resume_run(other, {}, print)
    assert_same_run(asked.out, other)
    settings = tomllib.loads((other / "config.toml").read_text(encoding="utf-8"))["training"]
    last = events(other, "update")[-1]
    assert last["step"] == settings["max_steps"] > 12
    assert last["learning_rate"] == 0


def test_measuring_times_updates_in_earnest(request_of):
    _, told = plan_of(request_of(preset="tiny", max_minutes=0.5))
    assert "tokens/s here" in told[1]
