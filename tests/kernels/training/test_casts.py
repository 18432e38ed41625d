"""Weights cast together are those cast one by one, and are found where they are used."""

import torch
from torch import nn

from dragoman.kernels.training.casts import cast, cast_together
from dragoman.kernels.training.linear import linear


def test_each_weight_is_found_in_the_wanted_precision(device):
    weights = [torch.randn(shape, device=device, requires_grad=True) for shape in [(3, 5), (7,)]]
    with cast_together(weights, torch.bfloat16):
        copies = [cast(each, torch.bfloat16) for each in weights]
        assert [cast(each, torch.bfloat16) for each in weights] == copies
        assert cast(weights[0], torch.float64).dtype == torch.float64
    for copy, weight in zip(copies, weights, strict=True):
        assert torch.equal(copy, weight.bfloat16())
    assert cast(weights[0], torch.bfloat16) is not copies[0]


def test_what_has_the_precision_is_left_alone(device):
    weight = torch.randn(3, device=device)
    with cast_together([weight], torch.float32):
        assert cast(weight, torch.float32) is weight


def test_a_linear_layer_uses_what_was_cast_before(device):
    layer = nn.Linear(24, 32, device=device)
    states = torch.randn(5, 24, device=device, requires_grad=True)
    with torch.autocast(device.type, torch.bfloat16):
        expected = linear(states, layer)
        with cast_together(list(layer.parameters()), torch.bfloat16), torch.no_grad():
            layer.weight.zero_()
            layer.bias.zero_()
            found = linear(states, layer)
    assert torch.equal(found, expected)
