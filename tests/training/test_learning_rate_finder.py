"""The rate test: its rates, what it finds on known curves, what it leaves, what it refuses."""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from dragoman.errors import FolderError, OptionError, TrainingError
from dragoman.training import learning_rate_finder as finder
from dragoman.training.learning_rate_finder import (
    NUM_UPDATES,
    analyse_curve,
    describe_test,
    draw_test,
    find_learning_rate,
    is_diverging,
    rate_of,
)
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.preparation import RunRequest
from dragoman.training.run import start_run
from dragoman.training.run_setup import RATE_FILE, RATE_PICTURE
from dragoman.training.updates.distributed import Workers


def falling(middle, turning=1e9):
    """Losses that fall from 8 to 2, fastest at one rate, and rise steeply after another."""
    curve = []
    for index in range(NUM_UPDATES):
        rate = rate_of(index)
        fall = 6 / (1 + (rate / middle) ** 2)
        curve.append(2 + fall + (rate / turning) ** 3)
    return curve


def test_rates_rise_by_one_factor_from_end_to_end():
    rates = [rate_of(index) for index in range(NUM_UPDATES)]
    assert rates[0] == pytest.approx(1e-7)
    assert rates[-1] == pytest.approx(1.0)
    factors = [late / early for early, late in pairwise(rates)]
    assert factors == pytest.approx([1e7 ** (1 / (NUM_UPDATES - 1))] * len(factors))


@pytest.mark.parametrize("middle", [1e-5, 1e-3, 1e-2])
def test_steepest_is_the_middle_of_the_fall(middle):
    found = analyse_curve(falling(middle), has_diverged=False)
    assert found.steepest == pytest.approx(middle, rel=0.09)
    assert found.turning > 5 * middle
    assert found.suggested == pytest.approx(found.steepest, rel=0.05)


def test_suggestion_keeps_away_from_where_the_loss_rises():
    found = analyse_curve(falling(1e-3, turning=2e-3), has_diverged=True)
    assert found.turning < 4e-3
    assert found.suggested == pytest.approx(min(found.steepest, found.turning / 4), rel=0.05)
    assert found.suggested < found.steepest


def test_the_end_of_the_curve_does_not_hide_its_bottom():
    losses = falling(1e-3)[:150]
    broken = analyse_curve([*losses, 1e9, math.inf], has_diverged=True)
    assert broken.losses == (*losses, 1e9)
    assert broken.steepest == pytest.approx(1e-3, rel=0.09)
    assert broken.turning > 5e-3


def test_breaking_out():
    calm = [5.0, 4.0, 3.0, 2.0]
    assert not is_diverging(calm)
    assert not is_diverging([*calm, 12.0])  # one bad batch is no divergence
    assert is_diverging([*calm, *[30.0] * 20])
    assert is_diverging([*calm, math.nan])
    assert is_diverging([math.inf])


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        ([3.0] * NUM_UPDATES, r"the loss stays over 3\.00 at every learning rate; give a higher"),
        ([3.0 + index / 9 for index in range(60)], "the loss stays over 3"),
        ([math.nan], "the loss is no number from the beginning at every learning rate"),
    ],
)
def test_a_loss_that_never_falls_is_told(losses, message):
    with pytest.raises(TrainingError, match=message):
        analyse_curve(losses, has_diverged=False)


def test_words_and_picture():
    found = analyse_curve(falling(1e-3), has_diverged=False)
    text = describe_test(found, Path("x"))
    assert f"--peak-learning-rate {found.suggested:.2g}" in text
    assert "the test ended at 1" in text
    broken = analyse_curve(falling(1e-3)[:171], has_diverged=True)
    assert f"at {rate_of(170):.2g} it had broken out" in describe_test(broken, Path("x"))
    assert draw_test(found).startswith(b"\x89PNG")


def ask(tmp_path, corpus, small, **more):
    return RunRequest(out=tmp_path / "out", files=corpus, preset="tiny", config=small, **more)


def test_leaves_numbers_and_a_picture_and_then_a_run_may_begin(
    tmp_path, corpus, small, said, monkeypatch
):
    monkeypatch.setattr(finder, "NUM_UPDATES", 60)
    request = ask(tmp_path, corpus, small)
    found = find_learning_rate(request, said.append)
    assert 1e-5 < found.suggested < 1
    left = {path.name for path in request.out.iterdir()}
    assert left == {"store", RATE_FILE, RATE_PICTURE}
    numbers = json.loads((request.out / RATE_FILE).read_text())
    assert numbers["suggested"] == found.suggested
    assert len(numbers["rates"]) == len(numbers["losses"]) == len(numbers["smoothed"])
    assert (request.out / RATE_PICTURE).read_bytes().startswith(b"\x89PNG")
    assert found == find_learning_rate(request, said.append)
    start_run(request, said.append)
    assert (request.out / "model.safetensors").exists()
    with pytest.raises(FolderError, match="holds another run"):
        find_learning_rate(request, said.append)


@pytest.mark.parametrize("optimiser", ["schedule-free", "muon"])
def test_every_optimiser_can_be_tested(tmp_path, corpus, small, said, optimiser, monkeypatch):
    monkeypatch.setattr(finder, "NUM_UPDATES", 40)
    small["training"] |= {"optimiser": optimiser, "schedule": "constant", "clip_norm": 1.0}
    found = find_learning_rate(ask(tmp_path, corpus, small), said.append)
    assert found.rates[0] < found.suggested < 1


def test_no_number_ends_the_test_and_leaves_nothing(tmp_path, corpus, small, said, monkeypatch):
    plain = TrainingStep.forward
    monkeypatch.setattr(TrainingStep, "forward", lambda *given: plain(*given) * math.nan)
    with pytest.raises(TrainingError, match="is no number from the beginning"):
        find_learning_rate(ask(tmp_path, corpus, small), said.append)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["store"]


def test_what_cannot_be_tested_is_refused(tmp_path, corpus, small, said, run):
    request, two = ask(tmp_path, corpus, small), Workers(rank=0, num_workers=2)
    with pytest.raises(OptionError, match="is for one process, not 2; start it without torchrun"):
        find_learning_rate(request, said.append, two)
    model = run(tmp_path / "model", small)
    tuned = {"training": {"objective": "reward", "device": "cpu"}}
    request = ask(tmp_path, corpus, tuned, start_from=model)
    with pytest.raises(OptionError, match="--objective reward: --find-learning-rate knows only"):
        find_learning_rate(request, said.append)
    assert not request.out.exists()


def test_something_else_is_left_alone(tmp_path, corpus, small, said):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("three years")
    with pytest.raises(FolderError, match="already holds something else"):
        find_learning_rate(ask(tmp_path, corpus, small), said.append)
