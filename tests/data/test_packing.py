"""Packed batches lose nothing, and say truly where sentences are."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import FlatSequences
from dragoman.data.packing import (
    TILE,
    Capacity,
    arrange,
    choose_capacity,
    num_groups,
    pack,
    plan_packed,
)

PAD = 2
pairs_of_lengths = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1)


def flat(lengths, first=3):
    """Sentences whose words are all different."""
    return FlatSequences(np.arange(first, first + sum(lengths)), np.array(lengths))


@given(pairs_of_lengths)
def test_every_word_is_there_and_knows_its_sentence_and_its_translation(lengths):
    source, target = flat([s for s, _ in lengths]), flat([t for _, t in lengths], 10_000)
    batch = pack(source, target, PAD, Capacity(128, 256, 60))
    assert batch.num_tokens == len(source.ids) + len(target.ids)
    assert batch.num_target_tokens == len(target.ids)
    assert batch.num_places == len(batch.source.ids) + len(batch.target.ids)
    found = []
    for side, other, words in (
        (batch.source, batch.target, source),
        (batch.target, batch.source, target),
    ):
        num_tokens = len(words.ids)
        for place in range(num_tokens):
            assert side.places[place] == place - side.own.first[place]
            assert side.own.first[place] <= place < side.own.end[place]
        spans = zip(*(each[:num_tokens].tolist() for each in (*side.own, *side.other)), strict=True)
        found.append(
            {
                (*side.ids[first:end].tolist(), None, *other.ids[begin:stop].tolist())
                for first, end, begin, stop in spans
            }
        )
        assert (side.ids[num_tokens:] == PAD).all()
        assert torch.equal(side.own.first[num_tokens:], side.own.end[num_tokens:])
        for each in (*side.own, *side.other, side.groups):
            assert (each.diff() >= 0).all(), "the kernels rely on it"
    sources, targets = (
        np.split(each.ids, np.cumsum(each.lengths)[:-1]) for each in (source, target)
    )
    pairs = list(zip(sources, targets, strict=True))
    assert found[0] == {(*s.tolist(), None, *t.tolist()) for s, t in pairs}
    assert found[1] == {(*t.tolist(), None, *s.tolist()) for s, t in pairs}


@given(st.lists(st.tuples(st.integers(1, 150), st.integers(1, 150)), min_size=1))
def test_groups_hold_whole_short_sentences_and_there_are_few(lengths):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    order, ends = arrange(source, target)
    assert sorted(order) == list(range(len(lengths)))
    groups = np.split(np.array(order), ends)
    for rows in groups[:-1]:
        assert 0 < source[rows].sum() <= TILE
        assert 0 < target[rows].sum() <= TILE
    assert (np.maximum(source, target)[groups[-1]] > TILE).all()
    assert len(ends) <= num_groups(int(source.sum() + target.sum()))


def test_groups_are_told_by_their_bounds():
    lengths = [60, 4, 100, 30, 40]
    batch = pack(flat(lengths), flat(lengths, 1000), PAD, Capacity(256, 256, 100))
    # 60 and 4 fill a group, 40 and 30 make one each, and 100 stands behind them.
    for side in (batch.source, batch.target):
        assert side.groups[:4].tolist() == [0, 64, 104, 134]
        assert (side.groups[4:] == 134).all()
        assert side.own.first[134] == 134
        assert side.own.end[134] == 234


def test_the_words_before_each_word():
    batch = pack(flat([2, 3]), flat([3, 1], 50), PAD, Capacity(128, 128, 3))
    assert batch.target.ids[:4].tolist() == [50, 51, 52, 53]
    assert batch.target.shifted(7)[:4].tolist() == [7, 50, 51, 7]
    assert (batch.target.shifted(7)[4:] == 7).all()


def test_a_batch_that_needs_more_room_gets_it():
    batch = pack(flat([300]), flat([5]), PAD, Capacity(128, 128, 100))
    assert batch.capacity == (320, 128, 300)
    assert (batch.source.ids != PAD).sum() == 300


@given(pairs_of_lengths, st.integers(60, 300), st.integers(0, 3))
def test_a_plan_is_the_order_cut_where_a_side_is_full(lengths, room, seed):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    order = np.random.default_rng(seed).permutation(len(lengths))
    capacity = Capacity(room, 2 * room, 60)
    plan = list(plan_packed(source, target, order, capacity))
    assert np.concatenate(plan).tolist() == order.tolist()
    for rows in plan[:-1]:
        assert source[rows].sum() <= capacity.source
        assert target[rows].sum() <= capacity.target
    for rows, after in pairwise(plan[:-2]):
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
