"""Attention among packed sentences equals attention with the mask spelt out."""

import numpy as np
import pytest
import torch

from dragoman.data.batches import FlatSequences
from dragoman.data.packed_mask import bidirectional_mask, causal_mask, cross_mask
from dragoman.data.packing import Capacity, pack
from dragoman.kernels.training import packed_attention as packed_attention_module
from dragoman.kernels.training.packed_attention import (
    Heads,
    packed_attention,
    plain_packed_attention,
)

# Longer than a block, shorter, of one word; in between and at the end of a block.
SOURCE_LENGTHS, TARGET_LENGTHS = [3, 70, 1, 20, 33], [5, 40, 2, 90, 8]
KINDS = ("anywhere", "back", "across")


@pytest.fixture
def batch(device):
    random = np.random.default_rng(1)
    sides = [
        FlatSequences(random.integers(3, 50, sum(lengths)), np.array(lengths))
        for lengths in (SOURCE_LENGTHS, TARGET_LENGTHS)
    ]
    return pack(*sides, 2, Capacity(128, 256, 90)).to(device)


def masked(batch, kind):
    """The mask, how many queries it is for, and how many keys."""
    source, target = batch.source, batch.target
    if kind == "anywhere":
        return bidirectional_mask(source), len(source.ids), None
    if kind == "back":
        return causal_mask(target), len(target.ids), None
    return cross_mask(target, source), len(target.ids), len(source.ids)


def leaves(batch, kind, heads, dtype):
    mask, num_queries, num_keys = masked(batch, kind)
    keys = heads.num_heads * (heads.key_dim + heads.value_dim)
    width = heads.num_heads * heads.key_dim
    device = batch.numbers.device
    if num_keys is None:
        return mask, [torch.randn(num_queries, width + keys, device=device, dtype=dtype)]
    return mask, [
        torch.randn(num_queries, width, device=device, dtype=dtype),
        torch.randn(num_keys, keys, device=device, dtype=dtype),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", [Heads(2, 16, 16), Heads(1, 24, 40)], ids=["even", "odd"])
def test_values_and_gradients_are_those_of_the_plain_equation(
    batch, kind, heads, precision, close, device
):
    dtype, error = precision
    mask, tensors = leaves(batch, kind, heads, dtype)
    ours = [each.clone().requires_grad_() for each in tensors]
    plain = [each.double().requires_grad_() for each in tensors]
    found = packed_attention(*_both(ours), heads, mask, 0.3)
    expected = plain_packed_attention(*_both(plain), heads, mask.visible, 0.3)
    close(found, expected, error)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad.double())
    for one, other in zip(ours, plain, strict=True):
        close(one.grad, other.grad, error)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_finds_nothing_and_changes_nothing(batch, kind, device):
    heads = Heads(2, 16, 16)
    mask, tensors = leaves(batch, kind, heads, torch.float32)
    found = packed_attention(*_both(tensors), heads, mask, 1.0)
    is_blind = mask.visible.first >= mask.visible.end
    assert is_blind.any()
    assert not found[is_blind].any()
    for each in tensors:
        num_tokens = sum(SOURCE_LENGTHS if len(each) == 128 else TARGET_LENGTHS)
        each[num_tokens:] = 1e4
    again = packed_attention(*_both(tensors), heads, mask, 1.0)
    assert torch.equal(found[~is_blind], again[~is_blind])


def keep_mask(seed, mask, num_heads, num_keys, dropout):
    """What weights are multiplied by: the kernels' hash, in whole numbers of Python's width."""
    seed, limit = int(seed), (1 << 32) - 1
    queries = torch.arange(len(mask.visible.first))[None, :, None]
    heads, keys = torch.arange(num_heads)[:, None, None], torch.arange(num_keys)[None, None, :]
    firsts = mask.visible.first.cpu().long()[None, :, None]
    value = ((queries * num_heads + heads) * mask.longest + keys - firsts) & limit
    value = (value * 0x9E3779B1 + (seed & 0x7FFFFFFF)) & limit
    value = ((value ^ (value >> 16)) * 0x7FEB352D) & limit
    value = ((value ^ (value >> 15)) + ((seed >> 31) & 0x7FFFFFFF)) & limit
    value = ((value ^ (value >> 16)) * 0x846CA68B) & limit
    is_kept = (value ^ (value >> 16)) >= round(dropout * (1 << 32))
    return is_kept.double() / (1 - dropout)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "heads",
    [pytest.param(Heads(2, 16, 16), id="even", marks=pytest.mark.slow),
     pytest.param(Heads(3, 8, 24), id="odd")],
)  # fmt: skip
def test_weights_are_dropped_alike_on_the_way_back(
    batch, kind, heads, precision, close, device, monkeypatch
):
    dtype, error = precision
    seed = torch.tensor([0x123456789ABCDEF], device=device)
    monkeypatch.setattr(packed_attention_module, "draw_seed", lambda _: seed)
    mask, tensors = leaves(batch, kind, heads, dtype)
    ours = [each.clone().requires_grad_() for each in tensors]
    plain = [each.double().requires_grad_() for each in tensors]
    kept = keep_mask(seed, mask, heads.num_heads, len(tensors[-1]), 0.3).to(device)
    found = packed_attention(*_both(ours), heads, mask, 0.3, 0.3)
    expected = plain_packed_attention(
        *_both(plain), heads, mask.visible, 0.3, lambda weights: weights * kept
    )
    close(found, expected, error)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad.double())
    for one, other in zip(ours, plain, strict=True):
        close(one.grad, other.grad, error)
    places = torch.arange(kept.size(2), device=device)
    may = (places >= mask.visible.first[:, None]) & (places < mask.visible.end[:, None])
    among = kept[:, may]
    spread = (0.3 * 0.7 / among.numel()) ** 0.5
    assert abs(float((among == 0).double().mean()) - 0.3) < 5 * spread


def test_every_call_drops_others(batch, device):
    heads = Heads(2, 16, 16)
    mask, tensors = leaves(batch, "back", heads, torch.float32)
    one, other = (packed_attention(*_both(tensors), heads, mask, 0.3, 0.3) for _ in range(2))
    assert not torch.equal(one, other)


def test_the_plain_equation_drops_a_share_of_the_weights():
    torch.manual_seed(1)
    random = np.random.default_rng(1)
    sides = [FlatSequences(random.integers(3, 50, 90), np.array([90])) for _ in range(2)]
    mask = bidirectional_mask(pack(*sides, 2, Capacity(128, 128, 90)).source)
    # All weights are equal and all values one: what is found counts what was kept.
    found = packed_attention(
        torch.zeros(128, 32), torch.ones(128, 64), Heads(2, 16, 16), mask, 1.0, 0.3
    )
    assert found[:90].mean() == pytest.approx(1.0, abs=0.02)
    assert (found[:90].std() * 90**0.5).item() == pytest.approx((0.3 / 0.7) ** 0.5, rel=0.2)
    assert not found[90:].any()


def _both(tensors):
    return tensors[0], tensors[1] if len(tensors) > 1 else None
