"""The compiled loss and its gradient: those of the equation."""

import pytest
import torch

from dragoman.kernels.language import can_compile
from dragoman.kernels.training.cross_entropy import plain_cross_entropy, to_gradient

pytestmark = pytest.mark.skipif(not can_compile(), reason="Numba cannot compile here")


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_the_equation(dtype, smoothing):
    torch.manual_seed(1)
    logits = (4 * torch.randn(30, 517)).to(dtype)
    targets = torch.randint(3, 517, (30,))
    targets[[4, 29]] = 2
    plain = logits.float().requires_grad_()
    expected = plain_cross_entropy(plain, targets, 2, smoothing)
    expected.sum().backward()
    losses = to_gradient(logits, targets, 2, smoothing)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(losses, expected.detach(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(logits.float(), plain.grad, rtol=tolerance, atol=tolerance / 10)
