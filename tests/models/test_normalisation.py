"""Add & Norm against its two equations, with the normalisation written out."""

import pytest
import torch

from dragoman.models.normalisation import AddAndNorm


def normalise(states, weight, bias, epsilon):
    mean = states.mean(-1, keepdim=True)
    variance = (states - mean).square().mean(-1, keepdim=True)
    return (states - mean) / (variance + epsilon).sqrt() * weight + bias


def make_layer(position, dropout=0.0):
    torch.manual_seed(0)
    layer = AddAndNorm(8, dropout=dropout, position=position)
    torch.nn.init.normal_(layer.norm.weight)
    torch.nn.init.normal_(layer.norm.bias)
    return layer


@pytest.mark.parametrize("position", ["post", "pre"])
def test_is_its_equation(position):
    layer = make_layer(position)
    states = torch.randn(2, 5, 8) * 3 + 1
    norm = (layer.norm.weight, layer.norm.bias, layer.norm.eps)
    if position == "post":
        expected = normalise(states + states.sin(), *norm)
    else:
        expected = states + normalise(states, *norm).sin()
    torch.testing.assert_close(layer(states, torch.sin), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_one_position_alone_is_looked_at(position):
    layer = make_layer(position)
    states = torch.randn(2, 5, 8)
    whole = layer(states, torch.tanh)
    torch.testing.assert_close(layer(states[1:, 2:3], torch.tanh), whole[1:, 2:3])


def test_dropout_touches_only_what_is_added():
    layer = make_layer("pre", dropout=0.5).train()
    states = torch.randn(4, 50, 8)
    added = layer(states, torch.ones_like) - states
    torch.testing.assert_close(added, 2 * (added > 1).float())
    assert 0.4 < (added > 1).float().mean() < 0.6
    torch.testing.assert_close(layer.eval()(states, torch.ones_like), states + 1)
