"""Products in eight bits: near the true ones, and blind to their neighbours."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dragoman.decoding.products import (
    FloatProduct,
    Int8Product,
    PackedProduct,
    WideInt8Product,
    can_pack,
    has_int8,
    has_vnni,
    join_layers,
    rectified_product,
)
from dragoman.eight_bits import round_matrix
from dragoman.quantised import Quantised


def in_eight_bits(matrix):
    return Quantised.of(round_matrix(matrix.numpy()))


needs_int8 = pytest.mark.skipif(not has_int8(), reason="this processor has no FBGEMM")


@needs_int8
@pytest.mark.parametrize("with_bias", [False, True])
def test_many_vectors_give_the_same_bits_as_few(with_bias):
    if not has_vnni():
        pytest.skip("this processor has no VNNI, or PyTorch no oneDNN")
    torch.manual_seed(3)
    weight, bias = (
        in_eight_bits(torch.randn(300, 64)),
        torch.randn(300) if with_bias else None,
    )
    states = torch.randn(100, 64) * torch.logspace(-2, 2, 100)[:, None]
    states[7] = 0
    wide, narrow = WideInt8Product(weight, bias), Int8Product(weight, bias)
    for rows in (1, 31, 32, 33, 100):
        assert torch.equal(wide(states[:rows]), narrow(states[:rows]))


@needs_int8
class TestInt8Product:
    @pytest.mark.parametrize("with_bias", [False, True])
    def test_sums_are_exact_for_what_was_rounded(self, with_bias):
        torch.manual_seed(1)
        weight, bias = torch.randn(50, 64), torch.randn(50) if with_bias else None
        states = torch.randn(7, 64) * torch.logspace(-2, 2, 7)[:, None]
        quantised = in_eight_bits(weight)
        found = Int8Product(quantised, bias)(states)
        steps = states.abs().amax(1, keepdim=True) / 63
        rounded = (states / steps).round() * steps
        expected = functional.linear(rounded.double(), quantised.restored().double())
        expected += 0 if bias is None else bias
        torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)

    def test_large_weights_and_states_do_not_overflow(self):
        weight = torch.full((8, 512), 1.0)
        states = torch.full((3, 512), 1.0)
        found = Int8Product(in_eight_bits(weight), None)(states)
        torch.testing.assert_close(found, torch.full((3, 8), 512.0), rtol=1e-5, atol=0.0)

    def test_neighbours_change_nothing(self):
        torch.manual_seed(2)
        product = Int8Product(in_eight_bits(torch.randn(96, 64)), torch.randn(96))
        states = torch.randn(33, 64)
        states[5] *= 1000
        together = product(states)
        for place in (0, 5, 32):
            assert torch.equal(product(states[place : place + 1])[0], together[place])
        assert torch.equal(product(states[10:20]), together[10:20])

    def test_nothing_gives_the_bias(self):
        bias = torch.randn(6)
        product = Int8Product(in_eight_bits(torch.randn(6, 16)), bias)
        assert torch.equal(product(torch.zeros(2, 16)), bias.expand(2, -1))

    def test_the_engine_of_others_is_left_as_it_was(self):
        before = torch.backends.quantized.engine
        Int8Product(in_eight_bits(torch.randn(6, 16)), None)
        assert torch.backends.quantized.engine == before


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
@pytest.mark.parametrize("kind", ["float", pytest.param("int8", marks=needs_int8)])
def test_rectified_products_are_not_negative(kind, with_bias):
    weight, states = torch.randn(20, 12), torch.randn(5, 12)
    bias = torch.randn(20) if with_bias else None
    product = (
        FloatProduct(weight, bias) if kind == "float" else Int8Product(in_eight_bits(weight), bias)
    )
    found = rectified_product(product, states)
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


@pytest.mark.skipif(not can_pack(torch.empty(1 << 11, 1 << 11)), reason="there is no oneDNN")
class TestPackedProduct:
    @pytest.mark.parametrize("with_bias", [False, True])
    @pytest.mark.parametrize("num_rows", [1, 3, 4, 16, 17, 64])
    def test_is_the_product(self, num_rows, with_bias):
        torch.manual_seed(3)
        weight, states = torch.randn(200, 48), torch.randn(num_rows, 48)
        bias = torch.randn(200) if with_bias else None
        found = PackedProduct(weight, bias)(states)
        expected = functional.linear(states.double(), weight.double())
        expected += 0 if bias is None else bias
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-4)

    def test_what_it_gives_may_be_written_to(self):
        product, states = PackedProduct(torch.randn(20, 8), None), torch.randn(3, 8)
        first = product(states)
        second = product(states).fill_(0)
        assert not second.any()
        assert torch.equal(first, product(states))


def test_only_large_matrices_of_float32_on_a_processor_are_packed():
    shape = (1 << 11, 1 << 11)
    assert not can_pack(torch.empty(*shape, dtype=torch.float64))
    assert not can_pack(torch.empty(*shape, device="meta"))
    assert not can_pack(torch.empty(1 << 11, 1 << 10))
