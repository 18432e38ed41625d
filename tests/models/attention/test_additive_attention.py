"""Additive attention against its equation, pair by pair."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dragoman.models.attention.additive_attention import (
    AdditiveAttention,
    Annotations,
    Attended,
)
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.observer import observed_attention
from dragoman.models.state import HypothesisState

LENGTHS = torch.tensor([5, 2, 1])


def make_attention(query_dim=3, key_dim=4, alignment_dim=6):
    torch.manual_seed(1)
    attention = AdditiveAttention(query_dim, key_dim, alignment_dim)
    for parameter in attention.parameters():
        nn.init.normal_(parameter)
    return attention


def make_inputs(num_queries=2, num_keys=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(3, num_queries, 3, generator=generator),
        torch.randn(3, num_keys, 4, generator=generator),
    )


def attend(attention, query, memory, mask):
    return attention(query, attention.prepare(memory), memory, mask)


@torch.no_grad()
def test_equals_the_equation_in_single_pairs():
    attention = make_attention()
    query, memory = make_inputs()
    found = attend(attention, query, memory, Mask(key_lengths=LENGTHS))
    for row, length in enumerate(LENGTHS.tolist()):
        for place in range(query.size(1)):
            scores = []
            for key in range(length):
                hidden = attention.query.weight @ query[row, place]
                hidden = hidden + attention.key.weight @ memory[row, key]
                pairs = zip(attention.score.tolist(), hidden.tolist(), strict=True)
                scores.append(sum(v * math.tanh(x) for v, x in pairs))
            total = sum(map(math.exp, scores))
            weights = [math.exp(score) / total for score in scores]
            context = sum(w * memory[row, key] for key, w in enumerate(weights))
            assert found.weights[row, place, :length].tolist() == pytest.approx(weights, abs=1e-5)
            torch.testing.assert_close(found.values[row, place], context, atol=1e-5, rtol=1e-5)


@given(num_queries=st.integers(1, 4), num_keys=st.integers(5, 7), seed=st.integers(0, 1000))
def test_weights_sum_to_one_and_padding_gets_none(num_queries, num_keys, seed):
    query, memory = make_inputs(num_queries, num_keys, seed)
    weights = attend(make_attention(), query, memory, Mask(key_lengths=LENGTHS)).weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, num_queries))
    is_token = (torch.arange(num_keys) < LENGTHS[:, None]).unsqueeze(1).expand_as(weights)
    assert weights[is_token].gt(0).all()
    assert weights[~is_token].eq(0).all()


def test_a_network_that_says_nothing_looks_everywhere_alike():
    attention = make_attention()
    nn.init.zeros_(attention.score)
    query, memory = make_inputs()
    found = attend(attention, query, memory, Mask(key_lengths=LENGTHS))
    for row, length in enumerate(LENGTHS.tolist()):
        expected = torch.full((2, length), 1 / length)
        torch.testing.assert_close(found.weights[row, :, :length], expected)
        mean = memory[row, :length].mean(0).expand(2, -1)
        torch.testing.assert_close(found.values[row], mean, atol=1e-6, rtol=1e-5)


def test_queries_do_not_disturb_one_another():
    attention, (query, memory) = make_attention(), make_inputs(num_queries=4)
    together = attend(attention, query, memory, Mask(key_lengths=LENGTHS)).values
    for place in range(4):
        alone = attend(attention, query[:, [place]], memory, Mask(key_lengths=LENGTHS)).values
        torch.testing.assert_close(together[:, [place]], alone)


def test_observer_sees_the_weights_and_may_replace_them():
    attention, (query, memory) = make_attention(), make_inputs()
    mask = Mask(key_lengths=LENGTHS)
    usual = attend(attention, query, memory, mask)
    holder = nn.ModuleDict({"cross_attention": attention})
    with observed_attention(holder) as maps:
        observed = attend(attention, query, memory, mask)
    torch.testing.assert_close(observed, usual, atol=0, rtol=0)
    (seen,) = maps["cross_attention"]
    torch.testing.assert_close(seen, usual.weights.unsqueeze(1), atol=0, rtol=0)

    def first_key_only(name, weights):
        return torch.zeros_like(weights).index_fill(-1, torch.tensor([0]), 1.0)

    with observed_attention(holder, first_key_only):
        replaced = attend(attention, query, memory, mask)
    torch.testing.assert_close(replaced.values, memory[:, [0]].expand(-1, 2, -1))
    assert replaced.weights[..., 0].eq(1).all()
    torch.testing.assert_close(attend(attention, query, memory, mask), usual, atol=0, rtol=0)


def test_annotations_survive_in_a_state_that_forgets_sentences():
    attention, (query, memory) = make_attention(), make_inputs()
    made = attention.annotate(memory, LENGTHS)
    assert made.is_token.tolist() == (torch.arange(5) < LENGTHS[:, None]).tolist()
    kept = torch.tensor([2, 0])
    state = HypothesisState(hypotheses={}, sentences=made.to_sentences()).keep(kept)
    left = Annotations.from_sentences(state.sentences)
    found = attention(query[kept], left.keys, left.values, left.mask)
    expected = attend(attention, query, memory, Mask(key_lengths=LENGTHS))
    torch.testing.assert_close(found, Attended(*(each[kept] for each in expected)))
