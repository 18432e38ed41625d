"""Compiled attention among packed sentences: values and gradients of the equation spelt out."""

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten
from dragoman.data.packed_mask import bidirectional_mask, causal_mask, cross_mask
from dragoman.data.packing import Capacity, pack
from dragoman.kernels.language import can_compile, plain_operations
from dragoman.kernels.training.attention_tiles import Heads
from dragoman.kernels.training.packed_attention import packed_attention

pytestmark = pytest.mark.skipif(not can_compile(), reason="Numba cannot compile here")
HEADS = Heads(3, 20, 24)


def make_batch(seed):
    random = np.random.default_rng(seed)
    sides = [
        flatten([random.integers(3, 40, random.integers(1, length)).tolist() for _ in range(9)])
        for length in (12, 70)
    ]
    return pack(*sides, 2, Capacity(0, 0, 70))


def compute(mask, tensors, dtype):
    tensors = [each.to(dtype).requires_grad_() for each in tensors]
    memory = tensors[1] if len(tensors) == 2 else None
    found = packed_attention(tensors[0], memory, HEADS, mask, 0.2).float()
    (found * torch.linspace(-1, 1, found.numel()).view(found.shape)).sum().backward()
    return [found.detach(), *(each.grad.float() for each in tensors)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", ["anywhere", "back", "across"])
def test_equals_the_equation(kind, dtype):
    batch = make_batch(1)
    mask = {
        "anywhere": lambda: bidirectional_mask(batch.source),
        "back": lambda: causal_mask(batch.target),
        "across": lambda: cross_mask(batch.target, batch.source),
    }[kind]()
    num_queries, width, both = len(mask.visible.first), 3 * 20, 3 * 44
    torch.manual_seed(3)
    if kind == "across":
        tensors = [torch.randn(num_queries, width), torch.randn(len(batch.source.ids), both)]
    else:
        tensors = [torch.randn(num_queries, width + both)]
    found = compute(mask, tensors, dtype)
    with plain_operations():
        expected = compute(mask, [each.to(dtype).float() for each in tensors], torch.float32)
    tolerance = 1e-5 if dtype == torch.float32 else 3e-2
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance)


def test_a_seed_drops_the_same_there_and_back():
    batch = make_batch(2)
    mask = bidirectional_mask(batch.source)
    states = torch.randn(len(batch.source.ids), 3 * 64, requires_grad=True)
    direction = torch.randn_like(states)
    values = []
    for step in (0.0, 1e-3, -1e-3):
        torch.manual_seed(5)
        found = packed_attention(states + step * direction, None, HEADS, mask, 0.2, 0.4)
        values.append(found.double().square().sum())
    values[0].backward()
    slope = float((values[1] - values[2]) / 2e-3)
    assert float((states.grad * direction).sum()) == pytest.approx(slope, rel=0.02)


@pytest.mark.parametrize("kind", ["anywhere", "across"])
def test_keys_that_nobody_sees_get_no_gradient(kind, monkeypatch):
    monkeypatch.setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)
    batch, width = make_batch(1), 3 * 20
    num_places, num_words = len(batch.source.ids), int(batch.source.own.end.max())
    torch.manual_seed(3)
    if kind == "across":
        mask = cross_mask(batch.target, batch.source)
        tensors = [torch.randn(len(batch.target.ids), width), torch.randn(num_places, 3 * 44)]
    else:
        mask, tensors = bidirectional_mask(batch.source), [torch.randn(num_places, width + 3 * 44)]
    torch.use_deterministic_algorithms(True)  # what is not written to is no number
    try:
        found = compute(mask, tensors, torch.float32)
    finally:
        torch.use_deterministic_algorithms(False)
    assert num_words < num_places
    assert not found[-1][num_words:].any()
    with plain_operations():
        expected = compute(mask, tensors, torch.float32)
    for one, other in zip(found[1:], expected[1:], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
