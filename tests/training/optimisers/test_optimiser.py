"""The optimiser against the formula of Adam, and the moving average against its own."""

import pytest
import torch
from torch import nn

from dragoman.training.optimisers.optimiser import (
    BETAS,
    EPSILON,
    MovingAverage,
    build_optimiser,
    optimiser_tensors,
    restore_optimiser,
)
from dragoman.training.options import TrainingOptions


def take_steps(model: nn.Module, optimiser: torch.optim.Optimizer, count: int) -> None:
    generator = torch.Generator().manual_seed(3)
    for _ in range(count):
        inputs = torch.randn(6, 4, generator=generator)
        model(inputs).square().sum().backward()
        for group in optimiser.param_groups:
            group["lr"] = 0.01
        optimiser.step()
        optimiser.zero_grad()


def test_is_the_papers_adam():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    adam = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, lr=0.01)
    assert (BETAS, EPSILON) == ((0.9, 0.98), 1e-9)
    take_steps(ours, build_optimiser(ours, TrainingOptions()), 5)
    take_steps(theirs, adam, 5)
    torch.testing.assert_close(ours.weight, theirs.weight)
    torch.testing.assert_close(ours.bias, theirs.bias)


def test_adam_is_pytorchs_bit_for_bit():
    torch.manual_seed(0)
    ours, theirs = nn.Linear(4, 3), nn.Linear(4, 3)
    theirs.load_state_dict(ours.state_dict())
    optimiser = build_optimiser(ours, TrainingOptions(weight_decay=0.1))
    assert type(optimiser) is torch.optim.AdamW
    groups = [{"params": [theirs.weight], "weight_decay": 0.1},
              {"params": [theirs.bias], "weight_decay": 0.0}]  # fmt: skip
    adam = torch.optim.AdamW(groups, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    take_steps(ours, optimiser, 5)
    take_steps(theirs, adam, 5)
    assert torch.equal(ours.weight, theirs.weight)
    assert torch.equal(ours.bias, theirs.bias)


def test_only_matrices_decay():
    model = nn.Linear(4, 3)
    optimiser = build_optimiser(model, TrainingOptions(weight_decay=0.3))
    decays = {id(each): group["weight_decay"] for group in optimiser.param_groups
              for each in group["params"]}  # fmt: skip
    assert decays == {id(model.weight): 0.3, id(model.bias): 0.0}


def test_restored_optimiser_goes_on_bit_for_bit():
    torch.manual_seed(0)
    model, other = nn.Linear(4, 3), nn.Linear(4, 3)
    optimiser = build_optimiser(model, TrainingOptions())
    take_steps(model, optimiser, 3)
    other.load_state_dict(model.state_dict())
    resumed = build_optimiser(other, TrainingOptions())
    kept = {name: each.clone() for name, each in optimiser_tensors(model, optimiser).items()}
    restore_optimiser(other, resumed, kept)
    take_steps(model, optimiser, 2)
    take_steps(other, resumed, 2)
    assert torch.equal(model.weight, other.weight)


def test_moving_average_is_the_weighted_sum():
    model = nn.Linear(1, 1, bias=False)
    with torch.no_grad():
        model.weight.fill_(1.0)
    average = MovingAverage(model, decay=0.5)
    expected = 1.0
    for step, value in enumerate([3.0, -2.0, 5.0], start=1):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update(step)
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    assert average.weights["weight"].item() == pytest.approx(expected)


def test_model_has_its_own_weights_again_after_borrowing_the_average():
    model = nn.Linear(2, 2)
    average = MovingAverage(model, decay=0.9)
    with torch.no_grad():
        model.weight.add_(1.0)
    own, mean = model.weight.detach().clone(), average.weights["weight"].clone()
    with average.in_place():
        assert torch.equal(model.weight, mean)
    assert torch.equal(model.weight, own)
    assert torch.equal(average.weights["weight"], mean)
