"""The order of a pass: every pair as often as its weight says, drawn by seed and pass alone."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.order import count_seen, draw_order, mixing_weights

counts = st.lists(st.integers(0, 40), min_size=1, max_size=5)
weight = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]), st.floats(0, 4))


@given(counts=counts, data=st.data(), seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_pairs_are_seen_as_often_as_their_weight_says(counts, data, seed, epoch):
    weights = data.draw(st.lists(weight, min_size=len(counts), max_size=len(counts)))
    order = draw_order(np.cumsum(counts).tolist(), weights, seed=seed, epoch=epoch)
    assert order.dtype == np.int32
    seen = Counter(order.tolist())
    start = 0
    for count, each in zip(counts, weights, strict=True):
        times = [seen.pop(pair, 0) for pair in range(start, start + count)]
        assert all(int(each) <= time <= int(each) + 1 for time in times)
        assert sum(times) == count_seen(count, each) == round(count * each)
        start += count
    assert not seen


@given(counts=counts, seed=st.integers(0, 9), epoch=st.integers(0, 9))
def test_weights_of_one_change_nothing(counts, seed, epoch):
    ends = np.cumsum(counts).tolist()
    plain = draw_order(ends, None, seed=seed, epoch=epoch)
    mixed = draw_order(ends, [1.0] * len(counts), seed=seed, epoch=epoch)
    assert plain.tolist() == mixed.tolist()
    assert sorted(plain.tolist()) == list(range(ends[-1]))


@pytest.mark.parametrize("weights", [None, [1.0, 2.5], [0.5, 0.5]])
def test_seed_and_pass_alone_decide(weights):
    def draw(seed, epoch):
        return draw_order([300, 400], weights, seed=seed, epoch=epoch).tolist()

    assert draw(1, 1) == draw(1, 1)
    assert len({tuple(draw(seed, epoch)) for seed in (1, 2) for epoch in (0, 1)}) == 4


def test_every_pass_draws_a_fresh_part():
    draws = [set(draw_order([1000], [0.5], seed=1, epoch=epoch).tolist()) for epoch in range(12)]
    assert all(len(drawn) == 500 for drawn in draws)
    # A pair is in none of twelve independent halves once in 4,096 times.
    assert len(set.union(*draws)) > 990
    assert 200 < len(draws[0] & draws[1]) < 300


def test_corpora_are_shuffled_together():
    order = draw_order([500, 1000], [1.0, 3.0], seed=1, epoch=1)
    assert len(order) == 2000
    for part in np.split(order, 4):
        assert 0.15 < (part < 500).mean() < 0.35


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=6), st.floats(1, 100))
def test_tempered_corpora_have_the_shares_of_the_law(counts, temperature):
    weights = mixing_weights(counts, temperature)
    seen = [count * weight for count, weight in zip(counts, weights, strict=True)]
    assert sum(seen) == pytest.approx(sum(counts))
    for one, count in zip(seen, counts, strict=True):
        for other, other_count in zip(seen, counts, strict=True):
            if count and other_count:
                assert one / other == pytest.approx((count / other_count) ** (1 / temperature))


@pytest.mark.parametrize(("temperature", "shares"), [(1, [0.9, 0.1]), (2, [0.75, 0.25])])
def test_a_tempered_pass_is_as_long_as_a_plain_one(temperature, shares):
    ends = [900, 1000]
    weights = mixing_weights([900, 100], temperature)
    for epoch in range(3):
        order = draw_order(ends, weights, seed=1, epoch=epoch)
        assert len(order) == 1000
        assert [(order < 900).mean(), (order >= 900).mean()] == pytest.approx(shares)
        assert order.tolist() == draw_order(ends, weights, seed=1, epoch=epoch).tolist()
    # Over many passes every pair of a corpus is seen equally often.
    seen = Counter()
    for epoch in range(200):
        seen.update(draw_order(ends, weights, seed=1, epoch=epoch).tolist())
    times = np.array([seen[pair] for pair in range(1000)]) / 200
    assert np.abs(times - np.repeat(weights, [900, 100])).max() < 0.15


def test_a_temperature_of_one_changes_nothing():
    ends = [30, 70, 70]
    plain = draw_order(ends, None, seed=1, epoch=2)
    assert (
        draw_order(ends, mixing_weights([30, 40, 0], 1), seed=1, epoch=2).tolist() == plain.tolist()
    )
