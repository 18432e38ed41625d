"""Linear maps with their own way back equal PyTorch's."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dragoman.kernels.training.linear import linear, sum_gradient, weight_gradient


@pytest.mark.parametrize("kind", ["plain", "bias", "rectified"])
@pytest.mark.parametrize("sizes", [(200,), (64, 64, 24)])
def test_values_and_gradients_are_those_of_pytorch(sizes, kind, precision, close, device):
    dtype, error = precision
    states = torch.randn(3, 40, 24, device=device, dtype=dtype, requires_grad=True)
    layers = [nn.Linear(24, size, bias=kind != "plain", device=device) for size in sizes]
    names = ["weight"] if kind == "plain" else ["weight", "bias"]
    parameters = [[getattr(layer, name) for layer in layers] for name in names]
    plain = [states, *(torch.cat(each) for each in parameters)]
    plain = [each.detach().to(dtype).double().requires_grad_() for each in plain]
    with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
        found = linear(states, *layers, rectified=kind == "rectified")
    expected = functional.linear(*plain)
    if kind == "rectified":
        expected = expected.relu()
    close(found, expected, error)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad.double())
    grads = [states.grad, *(torch.cat([one.grad for one in each]) for each in parameters)]
    for one, other in zip(grads, plain, strict=True):
        close(one, other.grad, 4 * error)
    assert states.grad.dtype == dtype
    assert all(each.grad.dtype == torch.float32 for each in layers[0].parameters())


def test_a_gradient_passes_where_the_output_was_positive(device, close):
    grad, out = torch.randn(130, 70, device=device), torch.randn(130, 70, device=device).relu()
    passed, sums = sum_gradient(grad, out)
    expected = grad * (out > 0)
    assert torch.equal(passed, expected)
    close(sums, expected.sum(0), 1e-6)


def test_a_weight_gradient_is_added_to_what_is_there(device, precision, close):
    dtype, error = precision
    grad, states = (torch.randn(50, size, device=device, dtype=dtype) for size in (8, 12))
    into = torch.randn(8, 12, device=device)
    expected = into.double() + grad.double().t() @ states.double()
    found = weight_gradient(grad, states, torch.float32, into=into)
    assert found.data_ptr() == into.data_ptr()
    close(found, expected, error)
