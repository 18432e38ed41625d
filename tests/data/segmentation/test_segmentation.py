"""Fresh segmentations: the same text in every pass, by seed, pass and sentence alone."""

import gc
import threading
from itertools import pairwise

import numpy as np
import pytest

from dragoman.data import workers
from dragoman.data.options import CorpusOptions
from dragoman.data.segmentation import segmentation_tables as tables
from dragoman.data.segmentation.segmentation import SegmentedPairs
from dragoman.data.segmentation.segmentation_tables import NUM_GROUPS
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.store import store_ids
from dragoman.text.bpe_dropout import BytePairs

MAX_LENGTH = 256


@pytest.fixture
def made(tmp_path, corpus_files, vocabularies):
    """Make pairs that are segmented afresh, from the same store each time."""

    def make(dropout=0.3, max_length=MAX_LENGTH, num_workers=1):
        text = store_text(tmp_path / "store", corpus_files, None, CorpusOptions(valid_pairs=5))
        store = store_ids(text, vocabularies, max_length)
        return SegmentedPairs(
            store.train,
            tmp_path / "store",
            vocabularies,
            dropout=dropout,
            max_length=max_length,
            num_workers=num_workers,
        )

    return make


def read(pairs, rows=None):
    """The sentences of both sides, each as a list of ids."""
    rows = np.arange(len(pairs.source_lengths)) if rows is None else rows
    sides = []
    for lengths, flat in zip(
        (pairs.source_lengths, pairs.target_lengths), pairs.ids(rows), strict=True
    ):
        assert flat.lengths.tolist() == lengths[rows].tolist()
        sides.append([each.tolist() for each in np.split(flat.ids, np.cumsum(flat.lengths)[:-1])])
    return sides


def test_nothing_dropped_is_the_usual_segmentation(made):
    pairs = made(dropout=0.0)
    assert read(pairs.for_epoch(1, 0)) == read(pairs.without_dropout)


def test_the_text_stays_and_its_segmentation_changes(made, subwords):
    pairs = made()
    passes = [read(pairs.for_epoch(1, epoch)) for epoch in range(3)]
    assert passes[0] != passes[1] != passes[2] != passes[0]
    for sides in passes:
        for side, sentences in enumerate(sides):
            assert all(each[-1] == subwords.eos_id for each in sentences)
            texts = [pairs.without_dropout.text(row)[side] for row in range(len(sentences))]
            assert subwords.decode(sentences) == texts
    # Both sides are longer, and not alike.
    usual = pairs.without_dropout
    present = pairs.for_epoch(1, 2)
    assert present.source_lengths.sum() > 1.1 * usual.source_lengths.sum()
    assert present.target_lengths.sum() > 1.1 * usual.target_lengths.sum()


def test_a_pass_does_not_depend_on_those_before_it(made):
    visited = made()
    for epoch in range(3):
        visited.for_epoch(1, epoch)
    third = visited.for_epoch(1, 3)
    assert read(made().for_epoch(1, 3)) == read(third)
    rows = np.array([7, 3, 3, 11])
    assert read(third, rows) == [[side[row] for row in rows] for side in read(third)]
    assert read(made().for_epoch(2, 3)) != read(third)


def test_a_pass_is_the_same_after_many_and_after_going_back(made):
    visited = made()
    for epoch in range(2 * NUM_GROUPS + 2):
        last = visited.for_epoch(1, epoch)
    assert visited.for_epoch(1, epoch) is last
    fresh = made()
    assert read(fresh.for_epoch(1, epoch)) == read(last)
    assert read(visited.for_epoch(1, 2)) == read(fresh.for_epoch(1, 2))


def test_processes_change_nothing(made, monkeypatch):
    here = made()
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 2)
    monkeypatch.setattr(tables, "BLOCK_WORDS", 5)
    elsewhere = made(num_workers=2)
    for epoch in range(4, 7):
        expected = here.for_epoch(1, epoch)
        assert read(elsewhere.for_epoch(1, epoch)) == read(expected)
    elsewhere.close()


def test_every_group_is_drawn_anew_in_turn(made):
    """A word of one group keeps its table for as many passes as there are groups."""
    pairs = made()
    side = pairs._preparation.sides[0]
    found = []
    for epoch in range(NUM_GROUPS + 1):
        _, table, _ = pairs.for_epoch(1, epoch)._sides[0]
        spans = zip(table.starts, table.lengths, strict=True)
        found.append([tuple(table.ids[start : start + length]) for start, length in spans])
    sizes = [side.num_draws[group::NUM_GROUPS].sum() for group in side.groups]
    bounds = list(pairwise(np.cumsum([0, *sizes])))
    for before, after in pairwise(found):
        assert sum(before[first:end] != after[first:end] for first, end in bounds) == 1
    assert all(found[0][first:end] != found[-1][first:end] for first, end in bounds)


def test_long_sentences_fall_back(made):
    usual = made().without_dropout
    limit = int(max(usual.source_lengths.max(), usual.target_lengths.max())) - 1
    pairs = made(dropout=0.6, max_length=limit)
    assert pairs.longest == limit + 1
    free = made(dropout=0.6).for_epoch(1, 0)
    bound = pairs.for_epoch(1, 0)
    for side, (lengths, plain) in enumerate(
        zip(
            (free.source_lengths, free.target_lengths),
            (usual.source_lengths, usual.target_lengths),
            strict=True,
        )
    ):
        is_long = lengths > limit + 1
        assert 0 < is_long.sum() < len(is_long)
        found = (bound.source_lengths, bound.target_lengths)[side]
        assert found.tolist() == np.where(is_long, plain, lengths).tolist()
        whole = zip(read(bound)[side], read(free)[side], read(usual)[side], is_long, strict=True)
        assert all(each == (back if long else drawn) for each, drawn, back, long in whole)


def test_a_pass_is_as_long_as_the_law_expects(made, subwords):
    dropout, pairs = 0.4, made(dropout=0.4)
    random, merges = np.random.default_rng(1), BytePairs(subwords)
    lengths: dict[str, float] = {}

    def expected(word):
        if word not in lengths:
            dropped = random.geometric(1 - dropout, (300, merges.count_merges(word))) - 1
            found, places = merges.segment(word, dropped.tolist())
            lengths[word] = np.mean([len(found[place]) for place in places])
        return lengths[word]

    usual = pairs.without_dropout
    sentences = [usual.text(row)[0].split() for row in range(len(usual))]
    law = sum(map(expected, (word for words in sentences for word in words))) + len(usual)
    passes = [pairs.for_epoch(1, epoch).source_lengths.sum() for epoch in range(3 * NUM_GROUPS)]
    assert law > 1.3 * usual.source_lengths.sum()
    assert np.mean(passes) == pytest.approx(law, rel=0.02)


def test_order_and_mix_are_those_of_the_store(made):
    pairs = made()
    assert pairs.epoch_order(1, 2).tolist() == pairs.without_dropout.epoch_order(1, 2).tolist()


def test_nothing_goes_on_when_nobody_wants_it(made):
    before = threading.active_count()
    pairs = made()
    pairs.for_epoch(1, 0)
    assert threading.active_count() > before
    del pairs
    gc.collect()
    assert threading.active_count() == before
