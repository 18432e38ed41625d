"""Rows in registers: against PyTorch's softmax, its gradient, and transposition."""

import numpy as np
import pytest
import torch

from dragoman.kernels.language import can_compile

if not can_compile():
    pytest.skip("Numba cannot compile here", allow_module_level=True)

from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.training.cpu.rows import softmax, softmax_backward, transpose_square


@compiled
def _soften(row, count):
    softmax(row.ctypes.data, count, len(row) // 16)


@compiled
def _soften_backward(weights, grad):
    softmax_backward(weights.ctypes.data, grad.ctypes.data, len(grad) // 16)


@compiled
def _transpose(rows, columns):
    size, other = 4 * rows.shape[1], 4 * columns.shape[1]
    transpose_square(rows.ctypes.data, size, columns.ctypes.data, other)


@pytest.mark.parametrize("count", [1, 15, 16, 17, 40, 48])
def test_scores_become_weights_and_their_gradient_comes_back(count):
    scores = torch.linspace(-300, 30, 48).flip(0)[torch.randperm(48)].requires_grad_()
    expected = (scores[:count] * np.log(2)).softmax(0)
    grad = torch.randn(48)
    (expected * grad[:count]).sum().backward()
    row, back = scores.detach().numpy().copy(), grad.numpy().copy()
    row[count:] = np.nan
    _soften(row, count)
    np.testing.assert_allclose(row[:count], expected.detach(), rtol=1e-5, atol=1e-7)
    assert not row[count:].any()
    _soften_backward(row, back)
    np.testing.assert_allclose(back * np.log(2), scores.grad, rtol=1e-4, atol=1e-6)


def test_a_square_is_turned_and_nothing_else_is_touched():
    rows = np.arange(16 * 20, dtype=np.float32).reshape(16, 20)
    columns = np.full((16, 24), -1, np.float32)
    _transpose(rows, columns)
    assert (columns[:, :16] == rows[:, :16].T).all()
    assert (columns[:, 16:] == -1).all()
