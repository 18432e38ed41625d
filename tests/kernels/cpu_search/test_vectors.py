"""What a Transformer does between its products, compared with PyTorch."""

import math

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401
import torch
from torch.nn import functional

from dragoman.kernels.cpu_search import vectors
from dragoman.kernels.cpu_search.model import ACTIVATIONS, Shape
from dragoman.kernels.cpu_search.weight_layout import LANES
from dragoman.models.layers.feed_forward import activate as plain_activate


def shape(*, is_norm_first=False, is_centred=True):
    return Shape(
        2, 3, 4, 0.5, is_norm_first, is_centred, 1e-5, 0, 1.0, False, np.empty(0, np.uint16)
    )


def test_powers_of_two():
    for exponent in np.linspace(-125, 0, 1001, dtype=np.float32):
        assert vectors.power_of_two(exponent) == pytest.approx(2.0 ** float(exponent), rel=3e-7)
    assert vectors.power_of_two(np.float32(-np.inf)) == 2.0**-126


def test_numbers_are_rounded_to_16_bits_as_pytorch_does():
    numbers = torch.cat([torch.randn(500), torch.tensor([0.0, -0.0, 1.00390625, 1.01171875])])
    halves = np.empty(len(numbers), np.uint16)
    vectors.to_kv_type(numbers.numpy(), halves)
    expected = numbers.to(torch.bfloat16)
    assert torch.equal(torch.from_numpy(halves.view(np.int16)).view(torch.bfloat16), expected)
    assert [vectors.from_bfloat16(each) for each in halves] == expected.tolist()


@pytest.mark.parametrize("is_centred", [True, False])
def test_vectors_are_normalised(is_centred):
    torch.manual_seed(1)
    vector = torch.randn(32) + 1
    weight, bias = torch.randn(32), torch.randn(32) if is_centred else torch.zeros(32)
    expected = (
        functional.layer_norm(vector, (32,), weight, bias, 1e-5)
        if is_centred
        else functional.rms_norm(vector, (32,), weight, 1e-5)
    )
    found = np.empty(32, np.float32)
    norm = torch.stack([weight, bias]).numpy()
    vectors.normalise(vector.numpy(), norm, shape(is_centred=is_centred), found)
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_activations(kind):
    torch.manual_seed(1)
    inner = 4 * torch.randn(3, 40)
    both = inner[:, :16].clone(), inner[:, 16:32].clone()
    gate = both[1] if kind in ("swiglu", "geglu") else None
    expected = plain_activate(both[0].relu() if kind == "relu" else both[0], gate, kind)
    vectors.activate(inner.numpy(), 3, 16, ACTIVATIONS.index(kind))
    torch.testing.assert_close(inner[:, :16], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 7, 16, 17, 40])
@pytest.mark.parametrize("is_half", [True, False])
@pytest.mark.parametrize("dims", [(3, 4), (64, 64), (48, 48), (32, 32), (64, 32)])
def test_a_word_looks_where_it_may(dims, is_half, count):
    torch.manual_seed(count)
    query = torch.randn(2 * dims[0] + 5)  # more entries than are read
    keys, values = (torch.randn(2, 50, dim) for dim in dims)
    if is_half:
        keys, values = keys.bfloat16(), values.bfloat16()
    places = torch.randperm(50)[:count]
    found, shares = np.empty(2 * dims[1], np.float32), np.empty(count + LANES, np.float32)
    attention = np.ones(count, np.float32)
    vectors.attend(
        query.numpy(),
        *((each.view(torch.uint16) if is_half else each).numpy() for each in (keys, values)),
        places.numpy().astype(np.uint32), count, 0.5, shares, found, attention,
    )  # fmt: skip
    expected = functional.scaled_dot_product_attention(
        query[: 2 * dims[0]].view(2, 1, dims[0]),
        keys[:, places].float(),
        values[:, places].float(),
        scale=0.5,
    )
    torch.testing.assert_close(torch.from_numpy(found), expected.flatten(), rtol=1e-4, atol=1e-5)
    scores = 0.5 * query[: 2 * dims[0]].view(2, 1, dims[0]) @ keys[:, places].float().mT
    expected = 1 + scores.softmax(2).sum((0, 1))  # added to what was there
    torch.testing.assert_close(torch.from_numpy(attention), expected, rtol=1e-4, atol=1e-5)


def test_words_are_remembered_head_by_head():
    vector, halves = torch.randn(3 + 2 * 4), torch.zeros(2, 5, 4, dtype=torch.bfloat16)
    vectors.write_kv(vector.numpy(), 3, 2, halves.view(torch.uint16).numpy())
    assert torch.equal(halves[:, 2], vector[3:].view(2, 4).bfloat16())
    assert not halves[:, [0, 1, 3, 4]].any()


def test_nothing_below_zero_is_left():
    for number in (-2.5, -0.0, 0.0, 1e-30, 3.5):
        assert vectors.rectify(np.float32(number)) == max(0, np.float32(number))


def test_shares_of_far_apart_scores():
    scores = np.array([-400.0, 3.0, 3.0, 99.0], np.float32)
    vectors.softmax_in_place(scores, 3)
    assert scores[:3].tolist() == pytest.approx([0, 0.5, 0.5])
    assert math.isclose(scores[3], 99)
