"""Attention among packed sentences equals attention with the mask spelt out."""

import numpy as np
import pytest
import torch

from dragoman.data.batches import Flat
from dragoman.data.packed_mask import look_across, look_anywhere, look_back
from dragoman.data.packing import Capacity, pack
from dragoman.kernels.packed_attention import Heads, packed_attention, plain_packed_attention

# Longer than a block, shorter, of one word; in between and at the end of a block.
SOURCE_LENGTHS, TARGET_LENGTHS = [3, 70, 1, 20, 33], [5, 40, 2, 90, 8]
KINDS = ("anywhere", "back", "across")


@pytest.fixture
def batch(device):
    random = np.random.default_rng(1)
    sides = [
        Flat(random.integers(3, 50, sum(lengths)), np.array(lengths))
        for lengths in (SOURCE_LENGTHS, TARGET_LENGTHS)
    ]
    return pack(*sides, 2, Capacity(128, 256, 90)).to(device)


def masked(batch, kind):
    """The mask, how many queries it is for, and how many keys."""
    source, target = batch.source, batch.target
    if kind == "anywhere":
        return look_anywhere(source), len(source.ids), None
    if kind == "back":
        return look_back(target), len(target.ids), None
    return look_across(target, source), len(target.ids), len(source.ids)


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


def _both(tensors):
    return tensors[0], tensors[1] if len(tensors) > 1 else None
