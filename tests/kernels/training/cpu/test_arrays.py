"""Tensors as arrays, rounding to bfloat16 and the hash of dropout: those of PyTorch and Triton."""

import numpy as np
import pytest
import torch

from dragoman.kernels.language import can_compile, dropout_threshold

pytestmark = pytest.mark.skipif(not can_compile(), reason="Numba cannot compile here")


def test_rounding_is_that_of_pytorch():
    from dragoman.kernels.training.cpu.arrays import as_array
    from dragoman.kernels.training.cpu.norms import store

    torch.manual_seed(1)
    values = torch.cat([torch.randn(1000) * 10.0**power for power in range(-6, 7, 3)])
    found = torch.empty(len(values), dtype=torch.bfloat16)
    store(as_array(values), as_array(found))
    assert torch.equal(found, values.bfloat16())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9])
def test_dropout_is_the_hash_that_kernels_on_a_card_use(share):
    from dragoman.kernels.training.cpu.arrays import make_drop
    from dragoman.kernels.training.cpu.norms import load_dropped

    seed, first = (1 << 61) + 12345, 70_000
    found = np.empty(5000, np.float32)
    load_dropped(np.ones(5000, np.float32), first, make_drop(share, seed), found)
    mask, kept = (1 << 32) - 1, []
    for place in range(first, first + 5000):
        value = (place * 0x9E3779B1 + (seed & 0x7FFFFFFF)) & mask
        value = ((value ^ (value >> 16)) * 0x7FEB352D) & mask
        value = ((value ^ (value >> 15)) + (seed >> 31 & 0x7FFFFFFF)) & mask
        value = ((value ^ (value >> 16)) * 0x846CA68B) & mask
        kept.append((value ^ (value >> 16)) >= dropout_threshold(share))
    expected = np.array(kept) / np.float32(1 - share)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.mean(kept) == pytest.approx(1 - share, abs=0.03)
