"""Muon against singular value decompositions and a straight-line double."""

import copy

import pytest
import torch
from tests.models.variants import ALL
from torch import nn

from dragoman.errors import OptionError
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.layers.embedding import Embedding, OutputLayer
from dragoman.training.optimisers.muon import (
    ADAM_RMS,
    MOMENTUM,
    QUINTIC,
    Muon,
    find_hidden_matrices,
    orthogonalise,
)
from dragoman.training.optimisers.optimiser import (
    build_optimiser,
    optimiser_tensors,
    restore_optimiser,
)
from dragoman.training.options import TrainingOptions

OPTIONS = TrainingOptions(optimiser="muon", weight_decay=0.1)


class Tiny(nn.Module):
    """Two matrices of one shape, lying and standing, another, and what is none."""

    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(6, 4)
        self.tall = nn.Linear(4, 6)
        self.square = nn.Linear(6, 6)
        self.score = nn.Linear(6, 1)
        self.words = nn.Parameter(torch.randn(9, 6))

    def forward(self):
        states = self.square(self.tall(torch.tanh(self.wide(self.words))))
        return (self.score(torch.tanh(states)) ** 2).sum() + (states @ self.words.T).cos().sum()


def build(dtype=torch.float64):
    torch.manual_seed(0)
    model = Tiny().to(dtype)
    return model, build_optimiser(model, OPTIONS)


def take_steps(model, optimiser, count, rate=0.02):
    for _ in range(count):
        model().backward()
        for group in optimiser.param_groups:
            group["lr"] = rate
        optimiser.step()
        optimiser.zero_grad()


@pytest.mark.parametrize("shape", [(8, 8), (8, 32), (64, 512), (1, 5)])
def test_singular_values_come_into_the_known_band(shape):
    generator = torch.Generator().manual_seed(2)
    matrices = torch.randn(3, *shape, generator=generator)
    found = orthogonalise(matrices)
    left, values, right = torch.linalg.svd(matrices, full_matrices=False)
    relative = values / matrices.norm(dim=(1, 2))[:, None]
    inner = left.mT @ found @ right.mT
    assert (inner - torch.diag_embed(inner.diagonal(dim1=1, dim2=2))).abs().max() < 1e-3
    reached = inner.diagonal(dim1=1, dim2=2)[relative > 0.002]
    assert reached.numel()
    assert 0.68 < reached.min() <= reached.max() < 1.21


def test_nothing_stays_nothing():
    assert torch.equal(orthogonalise(torch.zeros(2, 3, 4)), torch.zeros(2, 3, 4))


def test_each_of_a_stack_is_as_if_alone():
    matrices = (
        torch.randn(4, 5, 7, dtype=torch.float64)
        * torch.tensor([1.0, 9, 0.1, 3])[:, None, None].double()
    )
    alone = torch.cat([orthogonalise(each[None]) for each in matrices])
    torch.testing.assert_close(orthogonalise(matrices), alone)


def straight_line(model, num_steps, rate, decay):
    """Step one matrix after the other, through its decomposition; the rest by PyTorch's Adam."""
    matrices = {"wide.weight", "tall.weight", "square.weight"}
    named = dict(model.named_parameters())
    groups = [
        {"params": [each for name, each in named.items()
                    if name not in matrices and (each.dim() >= 2) is is_matrix],
         "weight_decay": decay if is_matrix else 0.0}
        for is_matrix in (True, False)
    ]  # fmt: skip
    adam = torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), eps=1e-9)
    momenta = {name: torch.zeros_like(named[name]) for name in matrices}
    for _ in range(num_steps):
        model().backward()
        with torch.no_grad():
            for name in matrices:
                weight, gradient = named[name], named[name].grad
                momenta[name] = MOMENTUM * momenta[name] + (1 - MOMENTUM) * gradient
                wanted = (1 - MOMENTUM) * gradient + MOMENTUM * momenta[name]
                left, values, right = torch.linalg.svd(wanted, full_matrices=False)
                values = values / wanted.norm()
                for _ in range(5):
                    values = sum(a * values**n for a, n in zip(QUINTIC, (1, 3, 5), strict=True))
                scale = ADAM_RMS * max(weight.shape) ** 0.5
                weight.mul_(1 - rate * decay)
                weight.sub_(rate * scale * (left * values) @ right)
        adam.step()
        model.zero_grad()


def test_is_the_published_algorithm():
    model, optimiser = build()
    twin = copy.deepcopy(model)
    take_steps(model, optimiser, 4)
    straight_line(twin, 4, 0.02, 0.1)
    for name, each in twin.named_parameters():
        torch.testing.assert_close(model.get_parameter(name), each, rtol=1e-8, atol=1e-10, msg=name)


def difference_from_pytorch(num_steps, dtype):
    """Take the steps of `torch.optim.Muon` beside ours; say how far apart these are, relatively."""
    torch.manual_seed(3)
    ours = [nn.Parameter(torch.randn(shape, dtype=dtype))
            for shape in ((24, 40), (40, 24), (32, 32), (24, 40))]  # fmt: skip
    theirs = copy.deepcopy(ours)
    rest = torch.optim.AdamW([nn.Parameter(torch.zeros(1))])
    optimiser = Muon(ours, rest, weight_decay=0.1)
    optimiser.param_groups[0]["lr"] = 0.02
    pytorchs = torch.optim.Muon(theirs, lr=0.02, weight_decay=0.1, momentum=MOMENTUM,
                                adjust_lr_fn="match_rms_adamw")  # fmt: skip
    worst = 0.0
    for _ in range(num_steps):
        before = [each.detach().clone() for each in ours]
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad.clone()
        optimiser.step()
        pytorchs.step()
        for one, other, start in zip(ours, theirs, before, strict=True):
            worst = max(worst, ((one - other).norm() / (one - start).norm()).item())
    return worst


def test_is_that_of_pytorch_without_its_rounding(monkeypatch):
    monkeypatch.setattr(torch.Tensor, "bfloat16", torch.Tensor.clone)
    assert difference_from_pytorch(5, torch.float64) < 1e-12


def test_is_near_that_of_pytorch_which_rounds_to_bfloat16():
    assert 1e-3 < difference_from_pytorch(1, torch.float32) < 0.03


@pytest.mark.parametrize("shape", [(64, 256), (256, 64), (128, 128)])
def test_steps_are_about_as_large_as_adams(shape):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(shape[1], shape[0]))
    optimiser = build_optimiser(model, TrainingOptions(optimiser="muon"))
    before = model[0].weight.detach().clone()
    model(torch.randn(512, shape[1])).square().sum().backward()
    for group in optimiser.param_groups:
        group["lr"] = 0.01
    optimiser.step()
    size = (model[0].weight - before).square().mean().sqrt() / 0.01
    assert 0.7 * ADAM_RMS < size < 1.2 * ADAM_RMS


def test_restored_goes_on_bit_for_bit():
    model, optimiser = build(torch.float32)
    take_steps(model, optimiser, 3)
    other, resumed = build(torch.float32)
    other.load_state_dict(model.state_dict())
    kept = {name: each.clone() for name, each in optimiser_tensors(model, optimiser).items()}
    assert {name.split("/")[0] for name in kept} == {"momentum", "step", "exp_avg", "exp_avg_sq"}
    restore_optimiser(other, resumed, kept)
    for each, chosen in ((model, optimiser), (other, resumed)):
        take_steps(each, chosen, 2)
    assert all(map(torch.equal, model.parameters(), other.parameters()))


@pytest.mark.parametrize("name", ALL)
def test_every_weight_is_stepped_once_and_words_by_adam(name):
    model = build_model(ALL[name], Vocabulary(30, 30, 2, 0))
    optimiser = build_optimiser(model, OPTIONS)
    assert isinstance(optimiser, Muon)
    stepped = [each for group in optimiser.param_groups for each in group["params"]]
    assert sorted(map(id, stepped)) == sorted(map(id, model.parameters()))
    chosen = set(map(id, find_hidden_matrices(model)))
    for module in model.modules():
        if isinstance(module, Embedding | OutputLayer):
            assert id(module.words) not in chosen
    linear = {id(each.weight) for each in model.modules()
              if isinstance(each, nn.Linear) and min(each.weight.shape) > 1}  # fmt: skip
    assert linear <= chosen
    assert chosen


def test_weights_without_gradients_stay():
    model, optimiser = build()
    before = model.square.weight.detach().clone()
    model.wide.weight.sum().backward()
    optimiser.param_groups[0]["lr"] = 0.1
    optimiser.step()
    assert torch.equal(model.square.weight, before)


def test_divided_matrices_are_refused():
    with pytest.raises(
        OptionError, match=r"training\.parallel is shard: muon needs whole matrices"
    ):
        TrainingOptions(optimiser="muon", parallel="shard")
