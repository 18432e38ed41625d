"""Packed batches lose nothing, and say truly where sentences are."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import Flat
from dragoman.data.packing import Capacity, choose_capacity, pack, plan_packed

PAD = 2
pairs_of_lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1)


def flat(lengths, first=3):
    """Sentences whose words are all different."""
    return Flat(np.arange(first, first + sum(lengths)), np.array(lengths))


@given(pairs_of_lengths)
def test_every_word_is_there_and_knows_its_sentence_and_its_translation(lengths):
    source, target = flat([s for s, _ in lengths]), flat([t for _, t in lengths], 10_000)
    batch = pack(source, target, PAD, Capacity(128, 256, 60))
    assert batch.num_tokens == len(source.ids) + len(target.ids)
    assert batch.num_target_tokens == len(target.ids)
    assert batch.num_places == len(batch.source.ids) + len(batch.target.ids)
    for side, words, other in ((batch.source, source, target), (batch.target, target, source)):
        start, other_start = 0, 0
        for length, other_length in zip(words.lengths, other.lengths, strict=True):
            here = slice(start, start + length)
            assert side.ids[here].tolist() == words.ids[here].tolist()
            assert side.places[here].tolist() == list(range(length))
            assert set(side.own.first[here].tolist()) == {start}
            assert set(side.own.end[here].tolist()) == {start + length}
            assert set(side.other.first[here].tolist()) == {other_start}
            assert set(side.other.end[here].tolist()) == {other_start + other_length}
            start, other_start = start + length, other_start + other_length
        assert (side.ids[start:] == PAD).all()
        assert torch.equal(side.own.first[start:], side.own.end[start:])
        for spans in (*side.own, *side.other):
            assert (spans.diff() >= 0).all(), "the kernels rely on it"


def test_the_words_before_each_word():
    batch = pack(flat([2, 3]), flat([3, 1], 50), PAD, Capacity(128, 128, 3))
    assert batch.target.shifted(7)[:4].tolist() == [7, 50, 51, 7]
    assert (batch.target.shifted(7)[4:] == 7).all()


def test_a_batch_that_needs_more_room_gets_it():
    batch = pack(flat([300]), flat([5]), PAD, Capacity(128, 128, 100))
    assert batch.capacity == (384, 128, 300)
    assert (batch.source.ids != PAD).sum() == 300


@given(pairs_of_lengths, st.integers(60, 300), st.integers(0, 3))
def test_a_plan_is_the_order_cut_where_a_side_is_full(lengths, room, seed):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    order = np.random.default_rng(seed).permutation(len(lengths))
    capacity = Capacity(room, 2 * room, 60)
    plan = list(plan_packed(source, target, order, capacity))
    assert np.concatenate(plan).tolist() == order.tolist()
    for rows in plan:
        assert source[rows].sum() <= capacity.source
        assert target[rows].sum() <= capacity.target
    for rows, after in pairwise(plan[:-1]):
        more = np.append(rows, after[0])
        assert source[more].sum() > capacity.source or target[more].sum() > capacity.target


def test_a_pair_longer_than_the_room_stands_alone():
    lengths = np.array([500, 3])
    plan = list(plan_packed(lengths, lengths, np.array([0, 1]), Capacity(128, 128, 500)))
    assert [rows.tolist() for rows in plan] == [[0], [1]]


def test_few_pairs_left_share_with_the_batch_before():
    lengths = np.full(101, 10)
    sizes = [
        len(rows) for rows in plan_packed(lengths, lengths, np.arange(101), Capacity(500, 500, 10))
    ]
    assert sizes == [50, 26, 25]


def test_room_is_divided_as_the_corpus_is_and_little_is_wasted():
    random = np.random.default_rng(1)
    source = random.integers(1, 50, 20_000)
    target = np.maximum(1, (1.2 * source * random.lognormal(0, 0.2, 20_000)).astype(int))
    capacity = choose_capacity(source, target, 50_000)
    assert 50_000 <= capacity.source + capacity.target <= 50_256
    assert capacity.longest == max(source.max(), target.max())
    plan = list(plan_packed(source, target, random.permutation(20_000), capacity))
    filled = [source[rows].sum() + target[rows].sum() for rows in plan[:-2]]
    assert np.mean(filled) > 0.985 * (capacity.source + capacity.target)


@pytest.mark.parametrize("num_parts", [1, 2, 3, 16])
def test_a_part_has_room_for_its_share(num_parts):
    whole = Capacity(25_088, 25_216, 256)
    part = whole.share(num_parts)
    assert part.longest == 256
    for room, all_room in zip(part[:2], whole[:2], strict=True):
        assert all_room / num_parts <= room <= 1.03 * all_room / num_parts + 160 or num_parts == 1
