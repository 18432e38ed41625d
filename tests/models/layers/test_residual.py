"""The residual connection: its equations, and packed sentences in fewer passes."""

import pytest
import torch
from torch import nn

from dragoman.models.layers.normalisation import layer_norm, make_norm
from dragoman.models.layers.residual import (
    AddAndNorm,
    Forked,
    Pending,
    begin_residual,
    end_residual,
)


def make_layer(position, kind="layer", dropout=0.0):
    norm = make_norm(kind, 8, 20)
    torch.manual_seed(0)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return AddAndNorm(norm, dropout=dropout, position=position)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_is_its_equation(position):
    layer = make_layer(position)
    states = torch.randn(2, 5, 8) * 3 + 1
    norm = (layer.norm.weight, layer.norm.bias, layer.norm.epsilon)
    if position == "post":
        expected = layer_norm(states + states.sin(), *norm)
    else:
        expected = states + layer_norm(states, *norm).sin()
    torch.testing.assert_close(layer(states, torch.sin), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_without_the_sum_only_the_sublayer_is_left(position):
    layer = make_layer(position)
    layer.adds = False
    states = torch.randn(2, 5, 8) * 3 + 1
    norm = (layer.norm.weight, layer.norm.bias, layer.norm.epsilon)
    is_post = position == "post"
    expected = layer_norm(states.sin(), *norm) if is_post else layer_norm(states, *norm).sin()
    torch.testing.assert_close(layer(states, torch.sin), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("position", ["post", "pre"])
def test_one_position_alone_is_looked_at(position):
    layer = make_layer(position)
    states = torch.randn(2, 5, 8)
    whole = layer(states, torch.tanh)
    torch.testing.assert_close(layer(states[1:, 2:3], torch.tanh), whole[1:, 2:3])


@pytest.mark.parametrize("position", ["post", "pre"])
def test_the_place_is_passed_on(position):
    layer = make_layer(position, "batch-per-step").train()
    layer(torch.randn(4, 9, 8) * torch.arange(1.0, 10.0)[:, None], torch.tanh)
    layer.eval()
    states = torch.randn(2, 5, 8)
    whole = layer(states, torch.tanh)
    one = layer(states[:, 3:4], torch.tanh, 3)
    torch.testing.assert_close(one, whole[:, 3:4])
    assert (layer(states[:, 3:4], torch.tanh) - one).abs().max() > 0.01


def test_dropout_touches_only_what_is_added():
    layer = make_layer("pre", dropout=0.5).train()
    states = torch.randn(4, 50, 8)
    added = layer(states, torch.ones_like) - states
    torch.testing.assert_close(added, 2 * (added > 1).float())
    assert 0.4 < (added > 1).float().mean() < 0.6
    torch.testing.assert_close(layer.eval()(states, torch.ones_like), states + 1)


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("position", ["post", "pre"])
def test_packed_layers_compute_what_others_do(position, kind):
    layers = [make_layer(position, kind).double() for _ in range(3)]
    final = make_layer("pre", kind).norm.double() if position == "pre" else None
    states = torch.randn(5, 8, dtype=torch.float64)
    ours, plain = (states.clone().requires_grad_() for _ in range(2))
    residual = begin_residual(ours, final)
    assert isinstance(residual, Pending if position == "pre" else Forked)
    expected = plain
    for layer in layers:
        residual = layer.packed(residual, torch.sin)
        expected = layer(expected, torch.sin)
    found = end_residual(residual, final)
    expected = expected if final is None else final(expected)
    torch.testing.assert_close(found, expected)
    for each in (found, expected):
        each.sin().sum().backward()
    torch.testing.assert_close(ours.grad, plain.grad)


def test_what_is_pending_is_dropped_in_training_only():
    layer = make_layer("pre", dropout=0.5)
    states = torch.zeros(400, 8)
    for training, expected in ((True, {0.0, 2.0}), (False, {1.0})):
        first = layer.train(training).packed(Pending(states, None, 0.0), torch.ones_like)
        second = layer.packed(first, torch.ones_like)
        assert set(second.stream.flatten().tolist()) == expected
