"""Products of layers side by side say what each layer says."""

import pytest
import torch
from torch import nn

from dragoman.decoding.engines.cuda.rebuilt_layers import FloatProduct, join_layers


def test_a_product_in_float_is_the_linear_layer():
    layer = nn.Linear(8, 5)
    states = torch.randn(3, 8)
    assert torch.equal(FloatProduct(layer.weight, layer.bias)(states), layer(states))


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_joined_layers_say_what_each_says(count, with_bias):
    layers = [nn.Linear(8, 5 + place, bias=with_bias) for place in range(count)]
    states = torch.randn(3, 8)
    found = FloatProduct(*join_layers(layers))(states)
    torch.testing.assert_close(found, torch.cat([each(states) for each in layers], dim=1))


@pytest.mark.parametrize("with_bias", [False, True])
def test_rectified_products_are_not_negative(with_bias):
    product = FloatProduct(torch.randn(20, 12), torch.randn(20) if with_bias else None)
    states = torch.randn(5, 12)
    found = product.rectified(states)
    assert torch.equal(found, product(states).clamp(min=0))
    assert (found > 0).any()
    assert (found == 0).any()


@pytest.mark.gpu
def test_a_card_rectifies_in_passing():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    weight, bias = torch.randn(64, 32, device="cuda"), torch.randn(64, device="cuda")
    states = torch.randn(5, 32, device="cuda")
    product = FloatProduct(weight, bias)
    torch.testing.assert_close(product.rectified(states), product(states).relu())
