"""Tables of segmentations: whose draws are whose, and every place picks fairly among its word's."""

from collections import Counter

import numpy as np
import pytest

from dragoman.data.segmentation.segmentation_tables import (
    NUM_GROUPS,
    SegmentationTable,
    SideSampler,
    choose_num_samples,
)
from dragoman.data.store.mapped import slice_of
from dragoman.data.store.word_ids import END_WORD, WordIds

NUM_WORDS, NUM_LINES = 20, 3000


@pytest.fixture
def words():
    """Lines of words drawn at random, the first words more often."""
    chance = np.random.default_rng(1)
    lines = [
        [*(1 + chance.geometric(0.2, chance.integers(1, 9)) % (NUM_WORDS - 1)), END_WORD]
        for _ in range(NUM_LINES)
    ]
    flat = np.concatenate(lines).astype(np.uint32)
    texts = [b"", *(b"w" * number for number in range(1, NUM_WORDS))]
    return WordIds(
        words=flat,
        ends=np.cumsum([len(line) for line in lines]),
        texts=np.frombuffer(b"".join(texts), np.uint8),
        text_ends=np.cumsum([len(text) for text in texts]),
        counts=np.bincount(flat, minlength=NUM_WORDS),
    )


def owners_of(side):
    """Whose each draw of a table is, by what is asked for."""
    owners = []
    for group in side.groups:
        blocks = list(side.requests(group))
        assert len(blocks) == side.count_blocks(group)
        for text, *arrays in blocks:
            ends, word_ids, num_draws = (np.frombuffer(each, np.int64) for each in arrays)
            sizes = [
                len(slice_of(np.frombuffer(text, np.uint8), ends, each))
                for each in range(len(ends))
            ]
            assert sizes == word_ids.tolist()  # the words are as long as their numbers
            owners.extend(np.repeat(word_ids, num_draws).tolist())
    return np.array(owners)


@pytest.mark.parametrize("block_words", [2, 4096])
def test_every_place_picks_a_draw_of_its_word(words, monkeypatch, block_words):
    monkeypatch.setattr("dragoman.data.segmentation.segmentation_tables.BLOCK_WORDS", block_words)
    side = SideSampler(words)
    owners = owners_of(side)
    assert len(owners) == side.num_draws.sum()
    lines = np.array([5, 0, 5, 2999])
    draws, lengths = side.pick(lines, 7)
    expected = [slice_of(words.words, words.ends, line) for line in lines.tolist()]
    assert lengths.tolist() == [len(each) for each in expected]
    assert owners[draws].tolist() == np.concatenate(expected).tolist()
    # The same line picks the same beside any others; another key, others.
    first, again = draws[: lengths[0]], np.split(draws, np.cumsum(lengths))[2]
    assert first.tolist() == again.tolist() == side.pick(np.array([5]), 7)[0].tolist()
    every = np.arange(NUM_LINES)
    assert (side.pick(every, 7)[0] != side.pick(every, 8)[0]).mean() > 0.5


def test_all_draws_of_a_word_are_as_likely(words):
    side = SideSampler(words)
    owners = owners_of(side)
    draws, _ = side.pick(np.arange(NUM_LINES), 3)
    seen = Counter(draws.tolist())
    word = int(np.argmax(words.counts[1:])) + 1
    times = np.array([seen[draw] for draw in np.flatnonzero(owners == word)])
    assert len(times) == side.num_draws[word] > 100
    expected = words.counts[word] / len(times)
    # Pearson's statistic has a mean of n - 1 and a variance of 2(n - 1).
    statistic = ((times - expected) ** 2 / expected).sum()
    assert abs(statistic - (len(times) - 1)) < 4 * np.sqrt(2 * len(times))


def test_frequent_words_have_more_draws():
    assert choose_num_samples(np.array([1, 8, 9, 64, 100, 10_000, 10**9])).tolist() == [
        *(8, 8, 9, 64, 80, 800, 1024)
    ]


def test_joined_tables_hold_the_same():
    chance = np.random.default_rng(1)
    parts, expected = [], []
    for num_draws in (1, 5, 3):
        lengths = chance.integers(0, 4, num_draws).astype(np.int32)
        starts = (np.cumsum(lengths) - lengths).astype(np.int32)
        ids = chance.integers(0, 99, lengths.sum()).astype(np.uint32)
        arrays = [each.tobytes() for each in (starts[::-1], lengths[::-1], ids)]
        parts.append(SegmentationTable.read(arrays))
        expected += [each.tolist() for each in np.split(ids, np.cumsum(lengths)[:-1])][::-1]
    whole = SegmentationTable.join(parts)
    spans = zip(whole.starts, whole.lengths, strict=True)
    assert [whole.ids[start : start + length].tolist() for start, length in spans] == expected


def test_few_words_have_few_groups(words):
    few = WordIds(
        words=np.array([1, 0], np.uint32),
        ends=np.array([2]),
        texts=np.frombuffer(b"w", np.uint8),
        text_ends=np.array([0, 1]),
        counts=np.array([1, 1]),
    )
    assert len(SideSampler(few).groups) == 2 < len(SideSampler(words).groups) == NUM_GROUPS
    assert owners_of(SideSampler(few)).tolist() == [0, *[1] * 8]
