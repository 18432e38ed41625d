"""Updates: the same pairs whoever computes them, and shares that make up the whole."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.batches import flatten
from dragoman.data.order import draw_order
from dragoman.data.packing import PackedBatch
from dragoman.data.store.store import PairStore
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.distributed import Workers
from dragoman.training.updates.update_planner import UpdatePlanner

PAD = 2


class Pairs(PairStore):
    """Sentences whose every token says which pair it belongs to."""

    def __init__(self, lengths):
        self.source_lengths, self.target_lengths = (
            np.array(each) for each in zip(*lengths, strict=True)
        )

    def epoch_order(self, seed, epoch):
        return draw_order((len(self.source_lengths),), None, seed=seed, epoch=epoch)

    def ids(self, rows):
        sides = (self.source_lengths, self.target_lengths)
        return tuple(
            flatten([[int(row) + 10] * int(lengths[row]) for row in rows]) for lengths in sides
        )


lengths = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 20)), min_size=1, max_size=40)


def make_planner(pairs, rank=0, num_workers=1, **options):
    settings = TrainingOptions(**{"batch_tokens": 100} | options)
    workers = Workers(rank=rank, num_workers=num_workers)
    return UpdatePlanner(pairs, settings, workers=workers, pad_id=PAD)


@given(lengths, st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_shares_make_up_the_update(given_lengths, num_workers, num_parts, equal_counts):
    pairs = Pairs(given_lengths)
    rows = np.arange(len(given_lengths))
    updates = [
        UpdatePlanner(
            pairs,
            TrainingOptions(),
            workers=Workers(rank=rank, num_workers=num_workers),
            pad_id=PAD,
            equal_counts=equal_counts,
        ).make_update(rows, num_parts)
        for rank in range(num_workers)
    ]
    seen = [
        int(row) - 10
        for update in updates
        for batch in update.batches
        for row in batch.source.ids[:, 0]
    ]
    assert seen == rows.tolist()
    total = sum(batch.num_target_tokens for update in updates for batch in update.batches)
    assert {update.num_target_tokens for update in updates} == {total}
    passes = [len(update.batches) + len(update.dummy_batches) for update in updates]
    assert max(passes) <= num_parts
    if equal_counts:
        assert len(set(passes)) == 1
    else:
        assert not any(update.dummy_batches for update in updates)
    for update in updates:
        sizes = [len(batch.target.lengths) for batch in update.batches]
        assert update.max_pairs == max(sizes, default=0)


def test_the_plan_does_not_depend_on_who_computes_it():
    chance = np.random.default_rng(1)
    pairs = Pairs(chance.integers(1, 20, (300, 2)).tolist())
    first = [rows.tolist() for rows in make_planner(pairs).plan(3)]
    other = make_planner(pairs, rank=2, num_workers=4, accumulate=8)
    assert [rows.tolist() for rows in other.plan(3)] == first
    assert len(first) > 10


def test_the_largest_batch_of_the_largest_update_is_found():
    chance = np.random.default_rng(2)
    pairs = Pairs(chance.integers(1, 20, (300, 2)).tolist())
    planners = [make_planner(pairs, rank=rank, num_workers=2) for rank in range(2)]
    places = [
        max(
            batch.num_places
            for planner in planners
            for batch in planner.make_update(rows, 1).batches
        )
        for rows in planners[0].plan(0)
    ]
    largest = planners[0].find_largest(0)
    alone = make_planner(pairs)
    assert alone.make_update(largest, 1).batches[0].num_places == max(
        alone.make_update(rows, 1).batches[0].num_places for rows in alone.plan(0)
    )
    made = [planner.make_largest(largest, 1) for planner in planners]
    assert torch.equal(made[0].batches[0].source.ids, made[1].batches[0].source.ids)
    assert made[0].batches[0].num_places in places
    own = [planner.make_update(largest, 1).batches[0].num_places for planner in planners]
    assert made[0].batches[0].num_places == max(own)
    assert made[0].max_pairs == len(made[0].batches[0].target.lengths)


@pytest.mark.parametrize("num_parts", [1, 3])
def test_tokens_are_counted_on_both_sides(num_parts):
    pairs = Pairs([(3, 4), (5, 6), (1, 1)])
    planner = make_planner(pairs)
    assert planner.count_tokens(np.array([2, 0])).tolist() == [2, 7]
    assert planner.make_update(np.arange(3), num_parts).num_target_tokens == 11


class Dropped(Pairs):
    """Sentences that grow by a token a side in each pass."""

    @property
    def longest(self):
        return 40

    def for_epoch(self, seed, epoch):
        del seed
        lengths = np.stack([self.source_lengths, self.target_lengths], 1)
        return Pairs((lengths + epoch).tolist())


@pytest.mark.parametrize("packs", [False, True])
def test_batches_are_of_the_pass_that_is_planned(packs, monkeypatch):
    monkeypatch.setattr(PackedBatch, "pinned", lambda batch: batch)
    chance = np.random.default_rng(2)
    pairs = Dropped(chance.integers(1, 20, (200, 2)).tolist())
    settings, workers = TrainingOptions(batch_tokens=500), Workers(rank=0, num_workers=1)
    planner = UpdatePlanner(pairs, settings, workers=workers, pad_id=PAD, packs=packs)
    plain = int(pairs.source_lengths.sum() + pairs.target_lengths.sum())
    shapes = set()
    for epoch in (3, 0, 1):
        updates = [planner.make_update(rows, 1) for rows in planner.plan(epoch)]
        batches = [batch for update in updates for batch in update.batches]
        assert sum(batch.num_tokens for batch in batches) == plain + 2 * 200 * epoch
        assert all(batch.num_tokens < 600 for batch in batches)
        shapes.update(batch.capacity for batch in batches if packs)
    # One shape for all passes, though their sentences differ in length.
    assert len(shapes) == packs
