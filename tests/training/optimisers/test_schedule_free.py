"""Schedule-free AdamW against the algorithm written out number by number."""

import math

import pytest
import torch
from torch import nn

from dragoman.errors import OptionError
from dragoman.training.optimisers.optimiser import (
    BETAS,
    EPSILON,
    build_average,
    build_optimiser,
    optimiser_tensors,
    restore_optimiser,
)
from dragoman.training.options import TrainingOptions

OPTIONS = TrainingOptions(optimiser="schedule-free", schedule="constant", weight_decay=0.1)
RATES = [0.01, 0.02, 0.03, 0.03, 0.015, 0.03]


def bowl(weights):
    """A quadratic with another curvature in every direction."""
    curvatures = torch.linspace(0.5, 3.0, weights.numel(), dtype=weights.dtype)
    return (0.5 * curvatures * (weights.flatten() - 1) ** 2).sum()


def build(dtype=torch.float64):
    torch.manual_seed(0)
    model = nn.Linear(4, 3, dtype=dtype)
    average = build_average(model, OPTIONS)
    return model, build_optimiser(model, OPTIONS, average), average


def take_steps(model, optimiser, rates):
    for rate in rates:
        (bowl(model.weight) + bowl(model.bias)).backward()
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        optimiser.zero_grad()


def written_out(start, decay):
    """Algorithm 1 of the paper for one number of curvature a at a time."""
    expected = []
    curvatures = torch.linspace(0.5, 3.0, start.numel(), dtype=start.dtype).tolist()
    for curvature, first in zip(curvatures, start.flatten().tolist(), strict=True):
        x = y = z = first
        v = squares = 0.0
        for t, peak in enumerate(RATES, start=1):
            gradient = curvature * (y - 1)
            v = BETAS[1] * v + (1 - BETAS[1]) * gradient**2
            rate = peak * math.sqrt(1 - BETAS[1] ** t)
            z = z - rate * gradient / (math.sqrt(v) + EPSILON) - rate * decay * y
            squares += rate**2
            c = rate**2 / squares
            x = (1 - c) * x + c * z
            y = (1 - BETAS[0]) * z + BETAS[0] * x
        expected.append((x, y, z))
    return torch.tensor(expected, dtype=start.dtype).T


@pytest.mark.parametrize(("name", "decay"), [("weight", 0.1), ("bias", 0.0)])
def test_is_the_published_algorithm(name, decay):
    model, optimiser, average = build()
    parameter = getattr(model, name)
    expected = written_out(parameter.detach().clone(), decay)
    take_steps(model, optimiser, RATES)
    found = average.weights[name], parameter, optimiser.state[parameter]["stepped"]
    torch.testing.assert_close(
        torch.stack([each.detach().flatten() for each in found]), expected, rtol=1e-12, atol=1e-14
    )


def test_mean_finds_the_bottom_of_a_bowl_with_a_constant_rate():
    model, optimiser, average = build()
    plain = nn.Linear(4, 3, dtype=torch.float64)
    adam = build_optimiser(plain, TrainingOptions())
    for each, chosen in ((model, optimiser), (plain, adam)):
        chosen.param_groups[0]["weight_decay"] = 0.0
        generator = torch.Generator().manual_seed(1)
        for _ in range(3000):
            noise = torch.randn(12, generator=generator, dtype=torch.float64)
            (bowl(each.weight) + noise @ each.weight.flatten()).backward()
            for group in chosen.param_groups:
                group["lr"] = 0.05
            chosen.step()
            chosen.zero_grad()
    mean_distance = (average.weights["weight"] - 1).norm()
    assert mean_distance < 0.5 * (plain.weight - 1).norm()
    assert mean_distance < 0.2


def test_a_rate_of_zero_changes_nothing():
    model, optimiser, average = build()
    before = model.weight.detach().clone()
    take_steps(model, optimiser, [0.0])
    assert torch.equal(model.weight, before)
    assert torch.equal(average.weights["weight"], before)


def test_restored_goes_on_bit_for_bit():
    model, optimiser, average = build(torch.float32)
    other, resumed, other_average = build(torch.float32)
    take_steps(model, optimiser, RATES)
    kept = {name: each.clone() for name, each in optimiser_tensors(model, optimiser).items()}
    assert sum(name.startswith("progress/") for name in kept) == 1
    other.load_state_dict(model.state_dict())
    for name, each in average.weights.items():
        other_average.weights[name].copy_(each)
    restore_optimiser(other, resumed, kept)
    for each, chosen in ((model, optimiser), (other, resumed)):
        take_steps(each, chosen, [0.02, 0.01])
    assert torch.equal(model.weight, other.weight)
    assert torch.equal(average.weights["weight"], other_average.weights["weight"])


def test_the_loop_does_not_average_a_second_time():
    model, optimiser, average = build()
    take_steps(model, optimiser, RATES)
    before = average.weights["weight"].clone()
    average.update(7)
    assert torch.equal(average.weights["weight"], before)


def test_weights_without_gradients_stay():
    model, optimiser, _ = build()
    before = model.bias.detach().clone()
    bowl(model.weight).backward()
    optimiser.param_groups[0]["lr"] = 0.1
    optimiser.step()
    assert torch.equal(model.bias, before)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "training.schedule is inverse-sqrt: schedule-free does without; give --schedule"),
        ({"schedule": "constant", "ema_decay": 0.9},
         "training.ema_decay is 0.9: schedule-free keeps an average of its own; give --ema-decay"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(OptionError, match=message):
        TrainingOptions(optimiser="schedule-free", **changes)
