"""Multi-head attention against PyTorch's, and against a loop over its heads."""

import math

import pytest
import torch
from torch import nn

from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import (
    KeysAndValues,
    MultiheadAttention,
)

DIM, HEADS = 12, 3


def make_attention(*, key_dim=4, value_dim=4, bias=False, causal=False):
    torch.manual_seed(1)
    attention = MultiheadAttention(
        DIM, HEADS, key_dim=key_dim, value_dim=value_dim, bias=bias, causal=causal
    )
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


def pytorch_of(attention, *, bias):
    theirs = nn.MultiheadAttention(DIM, HEADS, bias=bias, batch_first=True)
    parts = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([each.weight for each in parts]))
        theirs.out_proj.weight.copy_(attention.output.weight)
        if bias:
            theirs.in_proj_bias.copy_(torch.cat([each.bias for each in parts]))
            theirs.out_proj.bias.copy_(attention.output.bias)
    return theirs


@pytest.mark.parametrize("bias", [False, True])
def test_equals_pytorch_with_padding(bias):
    attention = make_attention(bias=bias)
    theirs = pytorch_of(attention, bias=bias)
    queries, memory = torch.randn(2, 5, DIM), torch.randn(2, 6, DIM)
    lengths = torch.tensor([6, 3])
    is_padding = torch.arange(6) >= lengths[:, None]
    expected, _ = theirs(queries, memory, memory, key_padding_mask=is_padding)
    offered = attention.keys_and_values(memory)
    found = attention(queries, offered, Mask(key_lengths=lengths))
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_equals_pytorch_looking_no_later(bias):
    attention = make_attention(bias=bias, causal=True)
    theirs = pytorch_of(attention, bias=bias)
    states = torch.randn(2, 5, DIM)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected, _ = theirs(states, states, states, attn_mask=later)
    found = attention.attend(states, None)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("key_dim", "value_dim"), [(4, 4), (2, 5), (7, 1)])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_a_loop_over_the_heads(key_dim, value_dim, bias):
    attention = make_attention(key_dim=key_dim, value_dim=value_dim, bias=bias)
    queries, memory = torch.randn(1, 4, DIM), torch.randn(1, 6, DIM)
    heads = []
    for head in range(HEADS):
        key_rows = slice(head * key_dim, (head + 1) * key_dim)
        value_rows = slice(head * value_dim, (head + 1) * value_dim)
        projected = []
        for layer, given, rows in (
            (attention.query, queries, key_rows),
            (attention.key, memory, key_rows),
            (attention.value, memory, value_rows),
        ):
            own = given[0] @ layer.weight[rows].T
            projected.append(own + layer.bias[rows] if bias else own)
        query, key, value = projected
        heads.append((query @ key.T / math.sqrt(key_dim)).softmax(-1) @ value)
    expected = torch.cat(heads, dim=-1) @ attention.output.weight.T
    if bias:
        expected = expected + attention.output.bias
    found = attention(queries, attention.keys_and_values(memory), Mask())[0]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_cache_gives_what_the_whole_sequence_gives():
    attention = make_attention(value_dim=5, causal=True)
    states = torch.randn(2, 6, DIM)
    whole = attention.attend(states, None)
    cache = KeysAndValues(torch.full((2, HEADS, 9, 4), 7.0), torch.full((2, HEADS, 9, 5), 7.0))
    for place in range(6):
        newest = states[:, place : place + 1]
        found, cache = attention.step(newest, cache, place)
        torch.testing.assert_close(found, whole[:, place : place + 1], rtol=1e-5, atol=1e-5)
