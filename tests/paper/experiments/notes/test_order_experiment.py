"""Word order, with and without positions."""

from typing import get_args, get_type_hints

import pytest

from dragoman.errors import OptionError
from dragoman.models.options import TransformerOptions
from dragoman.paper.experiments.notes.order_experiment import OrderOptions, ProbeResult, probe, run

SCHEMES = list(get_args(get_type_hints(TransformerOptions)["positions"]))
TINY = OrderOptions(num_layers=1, model_dim=16, sentences=20, steps=1, seeds=2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"num_layers": 0}, "--num-layers is 0: give ≥ 1"),
        ({"model_dim": 4}, "--model-dim is 4: give ≥ 8"),
        ({"model_dim": 20}, "--model-dim is 20: give a multiple of 8"),
        ({"sentences": 1}, "--sentences is 1: give ≥ 2"),
        ({"steps": -1}, "--steps is -1: give ≥ 0"),
        ({"seeds": 0}, "--seeds is 0: give ≥ 1"),
    ],
)
def test_bad_options_are_refused(wrong, message):
    with pytest.raises(OptionError, match=message):
        OrderOptions(**wrong)


def test_means_are_over_seeds_at_each_layer():
    probed = ProbeResult("index", True, False, ((1.0, 0.5), (0.5, 0.0)))
    assert probed.means == [0.75, 0.25]
    assert probed.name == "index, trained"


def test_training_happens_before_the_probe():
    fresh, trained = (
        probe("sinusoidal", TINY, is_trained=is_trained, has_residuals=True)
        for is_trained in (False, True)
    )
    assert len(fresh.scores) == TINY.seeds
    assert all(len(scores) == 1 + TINY.num_layers for scores in fresh.scores)
    assert fresh.scores != trained.scores


def test_experiment_tells_every_scheme():
    experiment = run(TINY, lambda _: None)
    disorder = experiment.table("disorder")
    assert disorder.column("positions") == SCHEMES
    sees = dict(zip(SCHEMES, disorder.column("sees the order"), strict=True))
    assert [scheme for scheme in SCHEMES if sees[scheme] == "no"] == ["none"]
    probes = experiment.table("probes")
    kinds = list(zip(probes.column("positions"), probes.column("weights"), strict=True))
    # Each with and without residuals.
    assert kinds[::2] == kinds[1::2]
    assert {scheme for scheme, _ in kinds} == set(SCHEMES)
    assert kinds.count(("sinusoidal", "trained")) == 2
    assert experiment.table("prefixes").numbers("largest change")[0] < 1e-4


def test_without_training_nothing_is_told_of_it():
    experiment = run(OrderOptions(num_layers=1, model_dim=16, sentences=10, steps=0, seeds=1),
                     lambda _: None)  # fmt: skip
    assert set(experiment.table("probes").column("weights")) == {"fresh"}
    assert not any("trained models" in finding for finding in experiment.findings)
