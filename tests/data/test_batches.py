"""Batches: the laws of padding, and every pair once in batches of the right size."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import batches
from dragoman.data.batches import (
    flatten,
    group_by_length,
    make_batch,
    pad_sequences,
    plan_epoch,
    split_rows,
)
from dragoman.data.order import draw_order

PAD = 2

sequences = st.lists(st.lists(st.integers(3, 99), min_size=1, max_size=7), min_size=1, max_size=5)
lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=120)


def arrays(pairs):
    source, target = zip(*pairs, strict=True)
    return np.array(source), np.array(target)


def make_corpus(num_pairs, seed=0):
    """Lengths as in real text: a long tail, and both sides nearly alike."""
    chance = np.random.default_rng(seed)
    source = np.clip(np.round(chance.lognormal(3.1, 0.55, num_pairs)), 1, 200).astype(np.int64)
    target = np.maximum(1, np.round(source * chance.uniform(0.85, 1.15, num_pairs)))
    return source + 1, target.astype(np.int64) + 1


# Padding


@given(sequences)
def test_flattening_keeps_everything(given_sequences):
    flat = flatten(given_sequences)
    assert flat.lengths.tolist() == [len(each) for each in given_sequences]
    parts = np.split(flat.ids, np.cumsum(flat.lengths)[:-1])
    assert [part.tolist() for part in parts] == given_sequences


@given(sequences)
def test_padding_keeps_everything_and_adds_only_padding(given_sequences):
    padded = pad_sequences(flatten(given_sequences), PAD)
    longest = max(map(len, given_sequences))
    assert padded.ids.shape == (len(given_sequences), longest)
    assert padded.ids.dtype == padded.lengths.dtype == torch.int64
    for row, each in enumerate(given_sequences):
        assert padded.ids[row].tolist() == each + [PAD] * (longest - len(each))
        assert padded.lengths[row] == len(each)


@given(sequences)
def test_tokens_are_where_there_is_no_padding(given_sequences):
    padded = pad_sequences(flatten(given_sequences), PAD)
    assert torch.equal(padded.is_token, padded.ids != PAD)


@given(sequences)
def test_shifted_words_stand_before_their_words(given_sequences):
    padded = pad_sequences(flatten(given_sequences), PAD)
    shifted = padded.shifted(PAD)
    assert shifted.shape == padded.ids.shape
    assert shifted[:, 0].eq(PAD).all()
    assert torch.equal(shifted[:, 1:], padded.ids[:, :-1])


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(3, 9), min_size=1, max_size=5),
            st.lists(st.integers(3, 9), min_size=1, max_size=5),
        ),
        min_size=1,
        max_size=4,
    )
)
def test_batch_counts_its_tokens(pairs):
    source, target = zip(*pairs, strict=True)
    batch = make_batch(flatten(source), flatten(target), PAD)
    assert batch.num_target_tokens == sum(map(len, target)) == int(batch.target.is_token.sum())
    assert batch.num_tokens == sum(map(len, source)) + sum(map(len, target))
    rows = len(pairs)
    assert batch.num_places == rows * (max(map(len, source)) + max(map(len, target)))
    copied = batch.to(torch.device("cpu"))
    assert torch.equal(copied.source.ids, batch.source.ids)
    assert copied.num_tokens == batch.num_tokens


# Plans


@given(
    pairs=lengths,
    batch_tokens=st.integers(1, 400),
    seed=st.integers(0, 99),
    epoch=st.integers(0, 9),
)
def test_every_pair_once_an_epoch(pairs, batch_tokens, seed, epoch):
    order = np.random.default_rng(seed).permutation(len(pairs))
    plan = list(
        plan_epoch(*arrays(pairs), order, batch_tokens=batch_tokens, seed=seed, epoch=epoch)
    )
    assert all(len(rows) for rows in plan)
    assert Counter(np.concatenate(plan).tolist()) == Counter(range(len(pairs)))


@given(
    pairs=lengths,
    places=st.lists(st.integers(0, 999), min_size=1, max_size=60),
    batch_tokens=st.integers(1, 400),
)
def test_a_pass_sees_what_its_order_says(pairs, places, batch_tokens):
    order = np.array([place % len(pairs) for place in places], dtype=np.int32)
    plan = plan_epoch(*arrays(pairs), order, batch_tokens=batch_tokens, seed=1, epoch=2)
    assert Counter(np.concatenate(list(plan)).tolist()) == Counter(order.tolist())


@given(pairs=lengths, batch_tokens=st.integers(1, 400))
def test_groups_hold_every_pair_once(pairs, batch_tokens):
    groups = group_by_length(*arrays(pairs), batch_tokens)
    assert Counter(np.concatenate(groups).tolist()) == Counter(range(len(pairs)))


@given(pairs=lengths, batch_tokens=st.integers(1, 400))
def test_no_batch_is_far_over_its_budget(pairs, batch_tokens):
    source, target = arrays(pairs)
    tokens = source + target
    share = tokens.sum() / max(1, round(tokens.sum() / batch_tokens))
    for rows in group_by_length(source, target, batch_tokens):
        of_batch = tokens[rows].sum()
        assert len(rows) == 1 or of_batch <= share + tokens[rows].max()
        assert share <= 1.5 * batch_tokens or tokens.sum() <= 1.5 * batch_tokens


def plan_of(corpus, seed=1, epoch=1, batch_tokens=4096):
    order = draw_order([len(corpus[0])], None, seed=seed, epoch=epoch)
    plan = plan_epoch(*corpus, order, batch_tokens=batch_tokens, seed=seed, epoch=epoch)
    return [tuple(rows.tolist()) for rows in plan]


def test_seed_and_epoch_decide_the_plan():
    corpus = make_corpus(3000)
    first = plan_of(corpus)
    assert plan_of(corpus) == first
    assert plan_of(corpus, epoch=2) != first
    assert plan_of(corpus, seed=2) != first


def test_batches_are_shuffled():
    source, target = make_corpus(5000)
    means = [np.mean(source[list(rows)]) for rows in plan_of((source, target))]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.4
    assert means != sorted(means)


@pytest.mark.parametrize("batch_tokens", [1024, 4096, 25_000])
def test_realistic_batches_keep_to_their_budget(batch_tokens):
    source, target = make_corpus(20_000)
    sizes = [
        (source + target)[list(rows)].sum()
        for rows in plan_of((source, target), batch_tokens=batch_tokens)
    ]
    assert max(sizes) <= 1.5 * batch_tokens
    assert np.mean(sizes) == pytest.approx(batch_tokens, rel=0.05)
    assert np.std(sizes) < 0.2 * batch_tokens


def test_padding_is_under_five_percent():
    source, target = make_corpus(20_000)
    places = sum(
        len(rows) * (source[list(rows)].max() + target[list(rows)].max())
        for rows in plan_of((source, target))
    )
    tokens = source.sum() + target.sum()
    assert 1 - tokens / places < 0.05


def test_a_large_corpus_is_dealt_into_pools(monkeypatch):
    monkeypatch.setattr(batches, "POOL_PAIRS", 500)
    corpus = make_corpus(2100)
    plan = plan_of(corpus, batch_tokens=800)
    assert sorted(pair for rows in plan for pair in rows) == list(range(2100))
    assert plan == plan_of(corpus, batch_tokens=800)


# Shares


@given(st.lists(st.integers(1, 60), min_size=1, max_size=60), st.integers(1, 70))
def test_shares_are_balanced_and_lose_nothing(tokens, num_parts):
    counts = np.array(tokens)
    rows = np.arange(len(tokens)) + 100
    shares = split_rows(rows, counts, num_parts)
    assert len(shares) == num_parts
    assert np.concatenate(shares).tolist() == rows.tolist()
    num_filled = min(num_parts, len(rows))
    assert [len(share) > 0 for share in shares] == [
        place < num_filled for place in range(num_parts)
    ]
    most = max(int(counts[share - 100].sum()) for share in shares)
    assert most <= sum(tokens) / num_filled + max(tokens)


def test_equal_pairs_make_equal_shares():
    rows = np.arange(24)
    for num_parts in (1, 2, 3, 4, 6, 8, 12, 24):
        shares = split_rows(rows, np.full(24, 7), num_parts)
        assert {len(share) for share in shares} == {24 // num_parts}
