"""Positions inside attention against their equations, written out pair by pair."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.models.attention.score_bias import (
    AlibiBias,
    RelativeBias,
    RotaryPositions,
    alibi_slopes,
)
from dragoman.models.positions.positional_encoding import offset_map


def test_rotary_turns_each_pair_by_its_angle():
    torch.manual_seed(0)
    vectors = torch.randn(2, 3, 5, 8)
    turned = RotaryPositions(8)(vectors, 7)
    pairs = torch.view_as_complex(vectors.unflatten(-1, (4, 2)).contiguous())
    for place in range(5):
        for pair in range(4):
            angle = (7 + place) / 10_000 ** (2 * pair / 8)
            expected = pairs[:, :, place, pair] * complex(math.cos(angle), math.sin(angle))
            found = torch.view_as_complex(turned[:, :, place, 2 * pair : 2 * pair + 2].contiguous())
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=30)
@given(
    first=st.integers(0, 300),
    second=st.integers(0, 300),
    shift=st.integers(0, 2_000),
    half=st.integers(1, 8),
)
def test_rotary_scores_depend_on_the_distance_alone(first, second, shift, half):
    rotary = RotaryPositions(2 * half)
    generator = torch.Generator().manual_seed(first)
    query, key = torch.randn(2, 1, 1, 1, 2 * half, generator=generator)
    near = rotary(query, first) @ rotary(key, second).mT
    far = rotary(query, first + shift) @ rotary(key, second + shift).mT
    torch.testing.assert_close(near, far, rtol=1e-4, atol=1e-4)


def test_rotary_scores_do_depend_on_the_distance():
    rotary = RotaryPositions(4)
    query = torch.ones(1, 1, 1, 4)
    scores = [(rotary(query, 0) * rotary(query, place)).sum().item() for place in range(4)]
    expected = [2 * math.cos(place) + 2 * math.cos(place / 100) for place in range(4)]
    assert scores == pytest.approx(expected, abs=1e-5)


def test_rotary_turns_against_the_offset_map():
    vectors = torch.randn(1, 1, 1, 6, dtype=torch.float64)
    turned = RotaryPositions(6).double()(vectors, 3)
    torch.testing.assert_close(turned, vectors @ offset_map(3, 6), rtol=1e-6, atol=1e-6)


def test_rotary_word_by_word():
    torch.manual_seed(1)
    rotary = RotaryPositions(8)
    vectors = torch.randn(2, 3, 6, 8)
    whole = rotary(vectors, 0)
    for place in range(6):
        one = rotary(vectors[:, :, place : place + 1], place)
        torch.testing.assert_close(one, whole[:, :, place : place + 1], rtol=0, atol=0)


def test_rotary_keeps_precision_and_has_no_weights():
    rotary = RotaryPositions(8)
    assert rotary(torch.randn(1, 1, 2, 8, dtype=torch.bfloat16), 0).dtype == torch.bfloat16
    assert not rotary.state_dict()


@pytest.mark.parametrize("num_heads", [1, 2, 4, 8, 16])
def test_slopes_of_a_power_of_two(num_heads):
    expected = [2 ** (-8 * head / num_heads) for head in range(1, num_heads + 1)]
    assert alibi_slopes(num_heads) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("num_heads", [3, 5, 6, 7, 12, 15])
def test_slopes_of_other_numbers_borrow_from_twice_as_many(num_heads):
    lower = max(power for power in (1, 2, 4, 8) if power < num_heads)
    slopes = alibi_slopes(num_heads)
    assert len(slopes) == len(set(slopes)) == num_heads
    assert slopes[:lower] == alibi_slopes(lower)
    assert slopes[lower:] == alibi_slopes(2 * lower)[::2][: num_heads - lower]


@pytest.mark.parametrize(("num_queries", "num_keys"), [(5, 5), (1, 7), (3, 7)])
def test_alibi_falls_with_distance(num_queries, num_keys):
    bias = AlibiBias(6)(torch.randn(2, 6, num_queries, 4), num_keys)
    assert bias.shape == (1, 6, num_queries, num_keys)
    for head, slope in enumerate(alibi_slopes(6)):
        for query in range(num_queries):
            for key in range(num_keys):
                distance = abs(num_keys - num_queries + query - key)
                expected = -slope * distance
                assert bias[0, head, query, key].item() == pytest.approx(expected, rel=1e-6)


def test_alibi_has_the_precision_of_the_queries_and_no_weights():
    bias = AlibiBias(2)
    assert bias(torch.randn(1, 2, 3, 4, dtype=torch.bfloat16), 3).dtype == torch.bfloat16
    assert not bias.state_dict()


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(("num_queries", "num_keys"), [(6, 6), (1, 6), (2, 6), (1, 1)])
def test_relative_bias_adds_a_vector_to_each_key(num_queries, num_keys, scaled):
    torch.manual_seed(0)
    heads, key_dim, furthest = 2, 4, 2
    bias = RelativeBias(heads, key_dim, furthest, scaled=scaled)
    query = torch.randn(3, heads, num_queries, key_dim)
    found = bias(query, num_keys)
    assert found.shape == (3, heads, num_queries, num_keys)
    for place in range(num_queries):
        for key in range(num_keys):
            distance = key - (num_keys - num_queries + place)
            row = max(-furthest, min(furthest, distance)) + furthest
            expected = (query[:, :, place] * bias.weight[row]).sum(-1)
            if scaled:
                expected = expected / math.sqrt(key_dim)
            torch.testing.assert_close(found[:, :, place, key], expected)


def test_relative_bias_word_by_word():
    torch.manual_seed(0)
    bias = RelativeBias(2, 4, 3)
    query = torch.randn(2, 2, 8, 4)
    whole = bias(query, 8)
    for place in range(8):
        one = bias(query[:, :, place : place + 1], place + 1)
        torch.testing.assert_close(one, whole[:, :, place : place + 1, : place + 1])


def test_relative_bias_learns_every_distance_it_meets():
    bias = RelativeBias(2, 4, 3)
    bias(torch.randn(2, 2, 3, 4), 3).square().sum().backward()
    met = bias.weight.grad.abs().sum((1, 2)) > 0
    # Three words are at most two apart, so the clipped ends are never met.
    assert met.tolist() == [False, True, True, True, True, True, False]


def test_relative_bias_begins_small_but_not_at_zero():
    torch.manual_seed(0)
    weight = RelativeBias(8, 64, 64).weight
    assert weight.std().item() == pytest.approx(1 / 8, rel=0.02)


@pytest.mark.parametrize("make", [lambda: AlibiBias(2), lambda: RelativeBias(2, 4, 3)])
def test_on_the_meta_device(make):
    with torch.device("meta"):
        bias = make()
        assert bias(torch.randn(2, 2, 1, 4), 5).shape[1:] == (2, 1, 5)
        assert RotaryPositions(4)(torch.randn(2, 2, 1, 4), 9).is_meta
