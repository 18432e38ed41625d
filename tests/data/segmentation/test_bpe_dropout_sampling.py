"""Draws: numbers that look independent, tables that hold what was asked for."""

import numpy as np
import pytest

from dragoman.data.segmentation.bpe_dropout_sampling import (
    make_key,
    make_segmentation_sampler,
    mix_bits,
    sample_dropped_merges,
)
from dragoman.data.store.word_ids import END_WORD


def test_scrambled_numbers_look_random():
    bits = np.unpackbits(mix_bits(np.arange(1, 20_001, dtype=np.uint64)).view(np.uint8))
    bits = bits.reshape(-1, 64).astype(float)
    assert np.abs(bits.mean(0) - 0.5).max() < 0.02
    # Neither the bits of a number nor numbers that follow each other know of one another.
    assert np.abs(np.corrcoef(bits.T) - np.eye(64)).max() < 0.04
    assert np.abs(((bits[1:] - 0.5) * (bits[:-1] - 0.5)).mean(0)).max() < 0.01
    assert len(np.unique(mix_bits(np.arange(10_000, dtype=np.uint64)))) == 10_000


def test_a_key_depends_on_every_number_and_their_order():
    keys = {make_key(*numbers) for numbers in ((0,), (1,), (0, 0), (1, 2), (2, 1), (1, 2, 0))}
    assert len(keys) == 6
    assert make_key(1, 2) == make_key(1, 2)
    assert 0 <= make_key(2**63, 5) < 2**64


@pytest.mark.parametrize("dropout", [0.0, 0.1, 0.5, 0.9])
def test_dropped_merges_follow_their_law(dropout):
    words, counts = np.arange(200), np.full(200, 500)
    found = np.frombuffer(sample_dropped_merges(7, words, counts, dropout), np.uint8)
    assert len(found) == 100_000
    for least in range(6):
        assert (found >= least).mean() == pytest.approx(dropout**least, abs=0.006)


def test_a_word_draws_the_same_beside_any_others():
    alone = sample_dropped_merges(7, np.array([5]), np.array([30]), 0.5)
    beside = sample_dropped_merges(7, np.array([4, 5, 9]), np.array([10, 30, 20]), 0.5)
    assert beside[10:40] == alone
    assert sample_dropped_merges(8, np.array([5]), np.array([30]), 0.5) != alone
    assert beside[:10] != beside[10:20] != beside[40:50]


def test_a_block_has_every_draw_of_every_word(subwords):
    words = ["", "small", "\u2581", "x" * 120, "house"]
    encoded = [word.encode() for word in words]
    numbers = (np.cumsum([len(each) for each in encoded]), np.arange(5), np.array([1, 50, 3, 2, 4]))
    work = make_segmentation_sampler([b"0.3", subwords.to_bytes(), subwords.to_bytes()])
    facts = np.array([1, make_key(1)], np.uint64).tobytes()
    message = [facts, b"".join(encoded), *(each.astype(np.int64).tobytes() for each in numbers)]
    starts, lengths, ids = (
        np.frombuffer(each, kind)
        for each, kind in zip(work(message), (np.int32, np.int32, np.uint32), strict=True)
    )
    drawn = [ids[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    assert len(drawn) == 60
    assert drawn[END_WORD].tolist() == [subwords.eos_id]
    owners = np.repeat(np.arange(5), numbers[2])
    for owner, each in list(zip(owners, drawn, strict=True))[1:]:
        assert subwords.decode([each.tolist()]) == [words[owner]]
    assert len({tuple(each) for each in drawn[1:51]}) > 3
    assert len(ids) < sum(lengths)  # what is alike is there once
