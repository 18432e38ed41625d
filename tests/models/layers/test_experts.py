"""Experts against the plain layer, the dense mixture, closed forms and chance itself."""

import math
import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from dragoman.models.layers.experts import Experts, Gate, Routing, balance_loss, chances
from dragoman.models.layers.feed_forward import FeedForward


def make_experts(num_experts=4, chosen=2, *, balance_weight=0.1, model_dim=6):
    torch.manual_seed(0)
    layer = Experts(model_dim, 10, num_experts, chosen, balance_weight)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer.double()


def one_expert(layer, index, states):
    hidden = states @ layer.weight_inner[index] + layer.bias_inner[index]
    return hidden.clamp(min=0) @ layer.weight_outer[index] + layer.bias_outer[index]


def dense_mixture(layer, gates, states):
    """Compute y = Σ G(x)_i E_i(x) with every expert."""
    return sum(gates[..., i : i + 1] * one_expert(layer, i, states) for i in range(gates.size(-1)))


def make_gate(clean, *, chosen, noisy=None, deviation=None):
    noisy = clean if noisy is None else noisy
    best = noisy.topk(chosen, dim=-1)
    deviation = torch.ones_like(clean) if deviation is None else deviation
    return Gate(best.indices, best.values.softmax(-1), clean, noisy, deviation)


def words(*shape):
    return torch.randn(*shape, 6, dtype=torch.float64)


# What the layer says.


@pytest.mark.parametrize("training", [True, False])
def test_one_expert_is_the_plain_layer(training):
    layer, plain = make_experts(1, 1).train(training), FeedForward(6, 10).double()
    with torch.no_grad():
        plain.inner.weight.copy_(layer.weight_inner[0].T)
        plain.inner.bias.copy_(layer.bias_inner[0])
        plain.outer.weight.copy_(layer.weight_outer[0].T)
        plain.outer.bias.copy_(layer.bias_outer[0])
    states = words(3, 5)
    torch.testing.assert_close(layer(states), plain(states))


def test_all_experts_are_the_dense_mixture():
    layer = make_experts(4, 4).eval()
    states = words(3, 5)
    expected = dense_mixture(layer, (states @ layer.weight_gate).softmax(-1), states)
    torch.testing.assert_close(layer(states), expected)


@pytest.mark.parametrize("chosen", [1, 2, 3])
def test_only_the_best_are_mixed(chosen):
    layer = make_experts(5, chosen).eval()
    states = words(3, 5)
    scores = states @ layer.weight_gate
    kth = scores.sort(-1, descending=True).values[..., chosen - 1 : chosen]
    gates = scores.masked_fill(scores < kth, -math.inf).softmax(-1)
    assert (gates > 0).sum(-1).eq(chosen).all()
    torch.testing.assert_close(layer(states), dense_mixture(layer, gates, states))


def test_gradients_are_those_of_the_dense_mixture():
    layer = make_experts(5, 2).eval()
    states = words(3, 5).requires_grad_()
    inputs = [states, *(each for name, each in layer.named_parameters() if "noise" not in name)]
    found = torch.autograd.grad(layer(states).sin().sum(), inputs)
    gate = layer.gate(states.flatten(0, 1))
    gates = torch.zeros_like(gate.clean).scatter(-1, gate.experts, gate.weights).view(3, 5, 5)
    expected = torch.autograd.grad(dense_mixture(layer, gates, states).sin().sum(), inputs)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_batching_changes_nothing_without_noise():
    layer = make_experts().eval()
    states = words(4, 7)
    whole = layer(states)
    torch.testing.assert_close(layer(states[2:3, 1:4]), whole[2:3, 1:4])
    torch.testing.assert_close(layer(states[0, 0]), whole[0, 0])
    assert layer(states[:0]).shape == (0, 7, 6)


def test_noise_in_training_only():
    layer = make_experts()
    states = words(4, 7)
    assert torch.equal(layer.eval()(states), layer(states))
    layer.train()
    assert not torch.equal(layer(states), layer(states))


def test_noise_is_normal_with_the_learnt_deviation():
    layer = make_experts().train()
    states = words(1).expand(40_000, 6)
    gate = layer.gate(states)
    noise = gate.noisy - states @ layer.weight_gate
    expected = (1 + (states[0] @ layer.weight_noise).exp()).log()
    torch.testing.assert_close(gate.deviation[0], expected)
    torch.testing.assert_close(noise.std(0), expected, rtol=0.02, atol=0)
    assert (noise.mean(0).abs() < 5 * expected / math.sqrt(40_000)).all()
    share_beyond = (noise.abs() > 2 * expected).double().mean()
    assert share_beyond.item() == pytest.approx(math.erfc(math.sqrt(2)), rel=0.05)


def test_padding_visits_nobody():
    layer = make_experts().train(False)
    states = words(2, 4)
    is_token = torch.tensor([[True, True, False, False], [True, True, True, True]])
    found = layer(states, Routing(is_token))
    torch.testing.assert_close(found[is_token], layer(states)[is_token])
    assert not found[~is_token].any()


def test_what_padding_holds_changes_nothing():
    layer = make_experts().eval()
    states = words(2, 4)
    is_token = torch.tensor([[True, True, False, False], [True, True, True, True]])
    expected = layer(states)[is_token]
    states[~is_token] = 1e6
    torch.testing.assert_close(layer(states, Routing(is_token))[is_token], expected)


# The balance.


def squared_variation(amounts):
    return amounts.var(correction=0) / amounts.mean() ** 2


def test_importance_loss_is_its_closed_form():
    # With every expert chosen the load is equal and the importance is left alone.
    layer = make_experts(4, 4, balance_weight=0.3).train()
    states = words(3, 5)
    routing = Routing()
    torch.manual_seed(7)
    layer(states, routing)
    torch.manual_seed(7)
    importance = layer.gate(states.flatten(0, 1)).noisy.softmax(-1).sum(0)
    (loss,) = routing.losses
    torch.testing.assert_close(loss, 0.3 * squared_variation(importance))
    assert loss > 0


def test_loss_is_the_sum_of_both_variations():
    layer = make_experts(5, 2).train()
    gate = layer.gate(words(30))
    importance = torch.zeros(5, dtype=torch.float64)
    for experts, weights in zip(gate.experts, gate.weights, strict=True):
        for expert, weight in zip(experts.tolist(), weights.tolist(), strict=True):
            importance[expert] += weight
    expected = squared_variation(importance) + squared_variation(chances(gate).sum(0))
    torch.testing.assert_close(balance_loss(gate, None), expected)


@pytest.mark.parametrize("chosen", [1, 2, 3])
def test_chances_are_those_of_noise_drawn_again(chosen):
    torch.manual_seed(0)
    num_experts, draws = 4, 40_000
    clean = torch.randn(num_experts, dtype=torch.float64)
    deviation = torch.rand(num_experts, dtype=torch.float64) + 0.3
    noisy = clean + torch.randn_like(clean) * deviation
    gate = make_gate(clean[None], chosen=chosen, noisy=noisy[None], deviation=deviation[None])
    found = chances(gate)[0]
    for expert in range(num_experts):
        redrawn = noisy.repeat(draws, 1)
        redrawn[:, expert] = clean[expert] + deviation[expert] * torch.randn(
            draws, dtype=torch.float64
        )
        is_chosen = (redrawn.topk(chosen).indices == expert).any(-1)
        share = is_chosen.double().mean().item()
        error = 5 * math.sqrt(0.25 / draws)
        assert found[expert].item() == pytest.approx(share, abs=error)


def test_balanced_gate_has_no_loss():
    scores = torch.tensor([2.0, 1.0, 0.0, -1.0], dtype=torch.float64)
    clean = torch.stack([scores.roll(shift) for shift in range(4)])
    for chosen in (1, 2, 3, 4):
        assert balance_loss(make_gate(clean, chosen=chosen), None).item() == pytest.approx(0)


def test_one_favourite_has_the_greatest_loss():
    clean = torch.zeros(6, 4, dtype=torch.float64)
    clean[:, 1] = 50
    # One expert gets all: the variation of (n, 0, 0, 0) is √3, in importance and in load.
    assert balance_loss(make_gate(clean, chosen=1), None).item() == pytest.approx(6)


def test_padding_counts_in_no_balance():
    layer = make_experts().train()
    gate = layer.gate(words(8))
    is_token = torch.tensor([True] * 5 + [False] * 3)
    kept = Gate(*(each[:5] for each in gate))
    torch.testing.assert_close(balance_loss(gate, is_token), balance_loss(kept, None))
    assert balance_loss(gate, torch.zeros(8, dtype=torch.bool)) == 0


def test_padding_is_passed_to_the_balance():
    layer = make_experts(4, 4, balance_weight=1).train()
    with torch.no_grad():
        layer.weight_noise.zero_()
    states = words(2, 4)
    is_token = torch.tensor([[True, True, False, False], [True, True, True, True]])
    routing = Routing(is_token)
    torch.manual_seed(3)
    layer(states, routing)
    torch.manual_seed(3)
    gates = layer.gate(states.flatten(0, 1)).noisy.softmax(-1)
    expected = squared_variation(gates[is_token.flatten()].sum(0))
    torch.testing.assert_close(routing.losses[0], expected)


def test_no_loss_unless_asked_for_in_training():
    layer = make_experts()
    routing = Routing()
    layer.eval()(words(2, 3), routing)
    assert not routing.losses
    layer.train()(words(2, 3))
    layer(words(2, 3), routing)
    layer(words(2, 3), routing)
    assert [loss.shape for loss in routing.losses] == [(), ()]
    assert not Routing().losses


def test_gradients_reach_both_matrices_of_the_gate():
    for use in ("output", "balance"):
        layer, routing = make_experts(5, 2), Routing()
        out = layer(words(4, 7), routing)
        (out.sin().sum() if use == "output" else routing.losses[0]).backward()
        for weight in (layer.weight_gate, layer.weight_noise):
            assert weight.grad.abs().sum() > 0
            assert weight.grad.isfinite().all()


def test_the_balance_loss_has_the_gradient_of_its_equation():
    torch.manual_seed(2)
    clean, raw = torch.randn(2, 5, 4, dtype=torch.float64)
    noise = torch.randn(5, 4, dtype=torch.float64)

    def loss(clean, raw):
        deviation = nn.functional.softplus(raw)
        gate = make_gate(clean, chosen=2, noisy=clean + noise * deviation, deviation=deviation)
        return balance_loss(gate, None)

    inputs = (clean.clone().requires_grad_(), raw.clone().requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs)


def test_a_vanishing_deviation_has_finite_gradients():
    layer, routing = make_experts(5, 2), Routing()
    with torch.no_grad():
        layer.weight_noise.copy_(torch.full((6, 5), -1e4))
    layer(words(4, 7).abs(), routing)
    routing.losses[0].backward()
    assert layer.weight_gate.grad.isfinite().all()
    assert layer.weight_noise.grad.isfinite().all()


def test_the_loss_brings_balance():
    torch.manual_seed(0)
    layer = Experts(6, 4, 4, 2, 1.0).train()
    tokens = torch.randn(500, 6) + 1
    with torch.no_grad():
        layer.weight_gate[:, 0] = 0.5
    optimiser = torch.optim.Adam([layer.weight_gate, layer.weight_noise], lr=0.05)
    losses = []
    for _ in range(30):
        loss = balance_loss(layer.gate(tokens), None)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[0] > 0.5
    assert max(losses[-3:]) < 0.05


# How it begins, and where it runs.


def test_the_gate_begins_impartial_and_the_experts_like_linear_layers():
    torch.manual_seed(0)
    layer = Experts(30, 50, 8, 2, 0.01)
    assert not layer.weight_gate.any()
    assert not layer.weight_noise.any()
    assert not layer.bias_inner.any()
    assert not layer.bias_outer.any()
    oracle = nn.init.xavier_uniform_(torch.empty(30, 50)).abs().max()
    for weight in (layer.weight_inner, layer.weight_outer):
        assert weight.abs().max().item() == pytest.approx(oracle.item(), rel=0.01)
        assert weight.std().item() == pytest.approx(math.sqrt(2 / 80), rel=0.02)


def test_an_expert_without_words_gets_no_gradient():
    layer = make_experts(6, 1).eval()
    layer(words(1)).sum().backward()
    asked = layer.bias_outer.grad.abs().sum(-1) > 0
    assert asked.sum() == 1


def test_autocast_leaves_the_gate_alone():
    layer = make_experts().float().eval()
    states = torch.randn(3, 5, 6)
    gate = layer.gate(states.flatten(0, 1))
    with torch.autocast("cpu", torch.bfloat16):
        low = layer.gate(states.flatten(0, 1))
        out = layer(states)
    assert torch.equal(low.clean, gate.clean)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), layer(states), rtol=0.05, atol=0.2)


@pytest.mark.parametrize("has_padding", [True, False])
def test_on_the_meta_device(has_padding):
    with torch.device("meta"):
        layer = Experts(6, 10, 4, 2, 0.01).train()
        routing = Routing(torch.ones(3, 5, dtype=torch.bool) if has_padding else None)
        states = torch.randn(3, 5, 6, requires_grad=True)
        out = layer(states, routing)
        (out.sum() + routing.losses[0]).backward()
    assert out.shape == (3, 5, 6)
    assert all(each.grad is not None for each in layer.parameters())


def test_costs_on_the_meta_device_are_those_of_k_experts_a_word():
    counts = []
    for device in ("cpu", "meta"):
        layer = Experts(6, 10, 4, 2, 0.01).to(device)
        with FlopCounterMode(display=False) as counter:
            layer(torch.randn(7, 6, device=device))
        counts.append(counter.get_total_flops())
    multiplications = 7 * (2 * 6 * 4 + 2 * 2 * 6 * 10)
    assert counts == [2 * multiplications] * 2


COMPILED = """
import torch
from dragoman.models.layers.experts import Experts, Routing

torch.manual_seed(0)
layer = Experts(6, 10, 4, 2, 0.1)
torch.nn.init.normal_(layer.weight_gate)
compiled = torch.compile(layer, backend="aot_eager")
for length in (3, 5, 8):
    states = torch.randn(2, length, 6)
    torch.testing.assert_close(compiled.eval()(states), layer.eval()(states))
    routing = Routing(torch.ones(2, length, dtype=torch.bool))
    (compiled.train()(states, routing).sum() + routing.losses[0]).backward()
    assert all(each.grad is not None for each in layer.parameters())
"""


@pytest.mark.slow
def test_compiled():
    # In a program of its own, where no shapes are checked: the compiler would trace the checks.
    subprocess.run([sys.executable, "-c", COMPILED], check=True)
