"""The feed-forward layer against equation 2, and gated against Shazeer's."""

import math

import pytest
import torch
from torch import nn

from dragoman.kernels.language import own_random_numbers
from dragoman.models.layers.feed_forward import FeedForward


def make(kind="relu", dropout=0.0):
    torch.manual_seed(0)
    return FeedForward(6, 10, kind=kind, dropout=dropout), torch.randn(2, 3, 6)


def widen(layer, states):
    return states @ layer.weight.T + layer.bias


def test_is_equation_2():
    layer, states = make()
    widened = widen(layer.inner, states)
    expected = widen(layer.outer, widened.clamp(min=0))
    torch.testing.assert_close(layer(states), expected)
    assert (widened < 0).any()


@pytest.mark.parametrize("kind", ["swiglu", "geglu"])
def test_is_gated(kind):
    layer, states = make(kind)
    gate = widen(layer.gate, states)
    # z·σ(z) and z·Φ(z), with the normal distribution by its error function.
    share = 1 / (1 + (-gate).exp()) if kind == "swiglu" else (1 + (gate / 2**0.5).erf()) / 2
    expected = widen(layer.outer, gate * share * widen(layer.inner, states))
    torch.testing.assert_close(layer(states), expected)


def test_two_thirds_of_the_width_cost_as_much():
    plain, gated = FeedForward(64, 384), FeedForward(64, 256, kind="swiglu")
    matrices = [
        sum(each.weight.numel() for each in layer.modules() if isinstance(each, nn.Linear))
        for layer in (plain, gated)
    ]
    assert matrices[0] == matrices[1]


@pytest.mark.parametrize("kind", ["relu", "swiglu", "geglu"])
def test_positions_do_not_meet(kind):
    layer, states = make(kind)
    whole = layer(states)
    for row in range(2):
        for place in range(3):
            torch.testing.assert_close(layer(states[row, place]), whole[row, place])


@pytest.mark.parametrize("kind", ["relu", "swiglu"])
def test_what_is_inside_is_dropped_in_training_only(kind):
    layer, states = make(kind, dropout=0.5)
    without, _ = make(kind)
    assert torch.equal(layer.eval()(states), without(states))
    layer.train()
    with torch.no_grad():
        layer.outer.weight.copy_(torch.eye(6, 10))
        layer.outer.bias.zero_()
        without.outer.load_state_dict(layer.outer.state_dict())
    with own_random_numbers(1):
        found = layer(states)
    inside = without(states)
    is_kept = found != 0
    torch.testing.assert_close(found[is_kept], 2 * inside[is_kept])
    assert (~is_kept & (inside != 0)).any()


def test_dropping_keeps_the_mean():
    layer, states = make("swiglu", dropout=0.3)
    expected = layer.eval()(states)
    layer.train()
    torch.manual_seed(2)
    found = torch.stack([layer(states) for _ in range(2000)]).detach()
    error = (found.mean(0) - expected).abs()
    assert (error < 6 * found.std(0) / math.sqrt(2000) + 1e-6).all()


@pytest.mark.parametrize("kind", ["swish", "gelu", "gelu-sigmoid"])
def test_is_smooth(kind):
    layer, states = make(kind)
    inner = widen(layer.inner, states)
    share = {
        "swish": 1 / (1 + (-inner).exp()),
        "gelu": (1 + (inner / 2**0.5).erf()) / 2,
        "gelu-sigmoid": 1 / (1 + (-1.702 * inner).exp()),
    }
    torch.testing.assert_close(layer(states), widen(layer.outer, inner * share[kind]))
    assert layer.gate is None
