"""Both forms of equation 1 against PyTorch's, and against a loop over single numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from dragoman.kernels.language import own_random_numbers
from dragoman.kernels.training.dropout import dropout
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.scaled_dot_product_attention import (
    attend,
    attention_weights,
    fused_attention,
    scaled_dot_product_attention,
)

MASKS = {
    "nothing": Mask(),
    "padding": Mask(key_lengths=torch.tensor([5, 2, 1])),
    "causal": Mask(causal=True),
    "both": Mask(key_lengths=torch.tensor([5, 2, 1]), causal=True),
}


def make_inputs(num_queries, num_keys, key_dim=4, value_dim=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shapes = ((num_queries, key_dim), (num_keys, key_dim), (num_keys, value_dim))
    return [torch.randn(3, 2, *shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("value_dim", [4, 7])
def test_equals_pytorch(name, value_dim):
    mask = MASKS[name]
    query, key, value = make_inputs(5, 5, value_dim=value_dim)
    may_attend = mask.may_attend(5, 5, query.device)
    expected = functional.scaled_dot_product_attention(query, key, value, attn_mask=may_attend)
    found = scaled_dot_product_attention(query, key, value, mask)
    torch.testing.assert_close(found.values, expected, rtol=1e-5, atol=1e-5)
    fused = fused_attention(query, key, value, mask)
    torch.testing.assert_close(fused, expected, rtol=1e-5, atol=1e-5)


@given(
    num_queries=st.integers(1, 5),
    num_keys=st.integers(5, 7),
    name=st.sampled_from(sorted(MASKS)),
    seed=st.integers(0, 1000),
)
def test_fused_equals_spelt_out(num_queries, num_keys, name, seed):
    inputs = make_inputs(num_queries, num_keys, key_dim=3, value_dim=5, seed=seed)
    fused = fused_attention(*inputs, MASKS[name])
    spelt_out = scaled_dot_product_attention(*inputs, MASKS[name]).values
    torch.testing.assert_close(fused, spelt_out, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("num_queries", [1, 5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_gradient_is_that_of_the_equation(name, has_bias, num_queries, dtype):
    inputs = [each.to(dtype).requires_grad_() for each in make_inputs(num_queries, 5)]
    exact = [each.detach().double().requires_grad_() for each in inputs]
    size = 2 * num_queries * 5
    bias = torch.linspace(-1, 1, size).view(1, 2, -1, 5).double() if has_bias else None
    found = fused_attention(*inputs, MASKS[name], bias=bias)
    expected = attention_weights(*exact[:2], MASKS[name], bias=bias) @ exact[2]
    close = {"rtol": 0.05, "atol": 0.03} if dtype == torch.bfloat16 else {}
    torch.testing.assert_close(found.double(), expected, **close)
    for one, other in zip(
        torch.autograd.grad(found.sum(), inputs), torch.autograd.grad(expected.sum(), exact),
        strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(one.double(), other, **close)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("has_bias", [False, True])
def test_dropped_weights_are_those_of_the_equation_times_what_was_drawn(name, has_bias):
    inputs = [each.double().requires_grad_() for each in make_inputs(5, 5)]
    bias = torch.linspace(-1, 1, 50).double().view(1, 2, 5, 5) if has_bias else None
    with own_random_numbers(4):
        found = fused_attention(*inputs, MASKS[name], bias=bias, dropout=0.4)
    weights = attention_weights(*inputs[:2], MASKS[name], bias=bias)
    with own_random_numbers(4):
        kept = dropout(torch.ones_like(weights), 0.4)
    expected = (weights * kept) @ inputs[2]
    torch.testing.assert_close(found, expected)
    assert (kept == 0).any()
    for one, other in zip(
        torch.autograd.grad(found.sum(), inputs), torch.autograd.grad(expected.sum(), inputs),
        strict=True,
    ):  # fmt: skip
        torch.testing.assert_close(one, other)


@pytest.mark.gpu
def test_a_gpu_drops_the_share():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    query = torch.zeros(4, 2, 256, 16, device="cuda")
    found = attend(query, query, torch.ones_like(query), None, scale=1.0, dropout=0.3)
    assert found.mean().item() == pytest.approx(1.0, abs=0.02)
    assert (found.std() * 16).item() == pytest.approx((0.3 / 0.7) ** 0.5, rel=0.2)


def test_equals_the_equation_in_single_numbers():
    query, key, value = make_inputs(3, 4, key_dim=3, value_dim=2)
    mask = Mask(key_lengths=torch.tensor([4, 3, 1]))
    found = scaled_dot_product_attention(query, key, value, mask)
    for row, length in enumerate([4, 3, 1]):
        for head in range(2):
            for place in range(3):
                looking = query[row, head, place].tolist()
                offers = key[row, head, :length].tolist()
                scores = [
                    sum(x * y for x, y in zip(looking, offer, strict=True)) / math.sqrt(3)
                    for offer in offers
                ]
                total = sum(map(math.exp, scores))
                weights = [math.exp(score) / total for score in scores]
                assert found.weights[row, head, place, :length].tolist() == pytest.approx(
                    weights, abs=1e-6
                )
                gives = value[row, head, :length].T.tolist()
                expected = [sum(w * x for w, x in zip(weights, g, strict=True)) for g in gives]
                assert found.values[row, head, place].tolist() == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", MASKS)
def test_weights_sum_to_one_and_are_zero_where_masked(name):
    query, key, _ = make_inputs(5, 5)
    weights = attention_weights(query, key, MASKS[name])
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 2, 5))
    may_attend = MASKS[name].may_attend(5, 5, query.device).expand_as(weights)
    assert weights[~may_attend].eq(0).all()
    assert weights[may_attend].gt(0).all()


def test_division_keeps_the_scores_variance():
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 400, 64), torch.randn(1, 1, 400, 64)
    log_weights = attention_weights(query, key, Mask()).log()
    assert log_weights.var(dim=-1).mean().item() == pytest.approx(1, abs=0.1)
