"""Dropout on a CPU: the right share, the right scale, and the same numbers from the same seed."""

import math

import pytest
import torch
from torch import nn

from dragoman.kernels.training.dropout import LEVELS, Dropout, dropout

SHARES = (0.1, 0.3, 0.5, 0.9)


@pytest.mark.parametrize("share", SHARES)
def test_drops_the_share_and_scales_the_rest(share: float) -> None:
    torch.manual_seed(1)
    states = torch.rand(1000, 333) + 0.5
    dropped = dropout(states, share)
    is_zero = dropped == 0
    spread = math.sqrt(share * (1 - share) / states.numel())
    assert abs(is_zero.double().mean() - share) < 5 * spread + 1 / LEVELS
    kept = dropped[~is_zero] / states[~is_zero]
    torch.testing.assert_close(kept, torch.full_like(kept, 1 / (1 - share)), rtol=1e-4, atol=0)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.123456])
def test_the_mean_is_kept_exactly(share: float) -> None:
    torch.manual_seed(1)
    dropped = dropout(torch.ones(4, 10, dtype=torch.float64), share)
    kept_share = 1 / dropped.max()
    assert float(kept_share * LEVELS) == pytest.approx(round((1 - share) * LEVELS), abs=1e-6)


def test_entries_are_dropped_independently() -> None:
    torch.manual_seed(1)
    is_zero = (dropout(torch.ones(1 << 20), 0.3) == 0).double()
    expected, spread = 0.3**2, math.sqrt(0.09 * 0.91 / (1 << 20))
    # Four neighbours share one drawn number; farther ones and whole rows do not.
    for distance in (1, 2, 3, 4, 5, 256, 4096):
        together = (is_zero[distance:] * is_zero[:-distance]).mean()
        assert abs(together - expected) < 6 * spread


@pytest.mark.parametrize("share", SHARES)
def test_gradient_is_the_mask(share: float) -> None:
    torch.manual_seed(1)
    states = torch.randn(7, 5, dtype=torch.float64).abs().add(1).requires_grad_()
    dropped = dropout(states, share)
    weights = torch.randn_like(dropped)
    (gradient,) = torch.autograd.grad(dropped, states, weights)
    torch.testing.assert_close(gradient, weights * (dropped / states).detach())


def test_same_mean_and_variance_as_pytorch() -> None:
    torch.manual_seed(1)
    states = torch.randn(400_000)
    ours, theirs = dropout(states, 0.3), nn.functional.dropout(states, 0.3)
    assert float(ours.mean()) == pytest.approx(float(theirs.mean()), abs=0.02)
    assert float(ours.std()) == pytest.approx(float(theirs.std()), rel=0.01)


def test_evaluation_changes_nothing() -> None:
    module, states = Dropout(0.5).eval(), torch.randn(3, 4)
    assert module(states) is states
    assert Dropout(0.0).train()(states) is states
    assert "p=0.5" in repr(module)


def test_same_seed_same_numbers_whatever_the_threads() -> None:
    module, states = Dropout(0.3).train(), torch.randn(501, 257)
    torch.manual_seed(7)
    first, second = module(states), module(states)
    torch.manual_seed(7)
    num_threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.equal(module(states), first)
        state = torch.get_rng_state()
        assert torch.equal(module(states), second)
        torch.set_rng_state(state)
        assert torch.equal(module(states), second)
    finally:
        torch.set_num_threads(num_threads)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_keeps_the_precision(dtype: torch.dtype) -> None:
    assert dropout(torch.ones(3, 4, dtype=dtype), 0.5).dtype == dtype


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (5,), (2, 3, 1)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert dropout(torch.ones(shape), 0.5).shape == shape


def test_keeps_a_transposed_tensor_in_place() -> None:
    torch.manual_seed(1)
    states = torch.arange(1.0, 13.0).view(3, 4).t()
    dropped = dropout(states, 0.5)
    is_kept = dropped != 0
    torch.testing.assert_close(dropped[is_kept], 2 * states[is_kept])


def test_nearly_everything_may_be_dropped() -> None:
    torch.manual_seed(1)
    assert torch.isfinite(dropout(torch.ones(10_000), 1 - 1e-9)).all()


def test_other_devices_use_pytorch() -> None:
    states = torch.empty(3, 4, device="meta")
    assert dropout(states, 0.5).shape == (3, 4)
