"""Sampling of BPE-dropout segmentations of words, as a job for `dragoman.data.workers`."""

import numpy as np

from dragoman.data.store.word_ids import END_WORD
from dragoman.data.workers import Message, Work
from dragoman.shapes import Int, UInt64
from dragoman.text.bpe_dropout import BytePairs
from dragoman.text.subwords import Subwords

_STEP = 0x9E3779B97F4A7C15
_WRAP = (1 << 64) - 1
_MOST_DROPPED = 255


def mix_bits(numbers: UInt64[np.ndarray, "numbers"]) -> UInt64[np.ndarray, "numbers"]:
    """Hash integers to pseudo-random integers (a bit mixer).

    Returns
    -------
    UInt64[np.ndarray, "numbers"]
        As good as independent of each other, every value equally likely (Steele et al. 2014,
        “Fast splittable pseudorandom number generators”).
    """
    numbers *= np.uint64(_STEP)
    numbers ^= numbers >> np.uint64(30)
    numbers *= np.uint64(0xBF58476D1CE4E5B9)
    numbers ^= numbers >> np.uint64(27)
    numbers *= np.uint64(0x94D049BB133111EB)
    numbers ^= numbers >> np.uint64(31)
    return numbers


def make_key(*numbers: int) -> int:
    """Combine several integers into one hash, used as a random seed."""
    key = 0
    for number in numbers:
        key = int(mix_bits(np.array([(key ^ number) + 1 & _WRAP], np.uint64))[0])
    return key


def sample_dropped_merges(
    key: int,
    word_ids: Int[np.ndarray, "words"],
    counts: Int[np.ndarray, "words"],
    dropout: float,
) -> bytes:
    """Sample from the geometric distribution: merges dropped before one is kept.

    Returns
    -------
    bytes
        A number a byte, those of the first word first: n or more with the probability of `dropout`
        to the power of n.
    """
    firsts = mix_bits(word_ids.astype(np.uint64) ^ np.uint64(key))
    ends = np.cumsum(counts)
    places = np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)
    numbers = mix_bits(np.repeat(firsts, counts) + places.astype(np.uint64))
    shares = ((numbers >> np.uint64(11)) + np.uint64(1)) * 2.0**-53  # over 0, up to 1
    dropped = np.log(shares) / np.log(dropout) if dropout else np.zeros(len(shares))
    return np.minimum(dropped, _MOST_DROPPED).astype(np.uint8).tobytes()


def make_segmentation_sampler(setting: Message) -> Work:
    """Make the worker function that samples segmentations.

    Returns
    -------
    Work
        Turns a side and a key, words and where they end, their numbers and how many draws each is
        to have, into where the segmentation of each draw begins, how long it is, and the ids of all
        segmentations.
    """
    dropout, *models = setting
    vocabularies = [Subwords.from_bytes(model) for model in dict.fromkeys(models)]
    sides = list(map(BytePairs, vocabularies))
    ends_with = [[vocabularies[0].eos_id]]

    def work(message: Message) -> Message:
        facts, text, *arrays = message
        side, key = np.frombuffer(facts, np.uint64).tolist()
        ends, word_ids, num_draws = (np.frombuffer(each, np.int64) for each in arrays)
        pairs = sides[min(side, len(sides) - 1)]
        words = _cut(text, ends)
        num_merges = list(map(pairs.count_merges, words))
        counts = num_draws * np.array(num_merges, np.int64)
        dropped = sample_dropped_merges(key, word_ids, counts, float(dropout))
        found: list[list[int]] = []
        draws: list[int] = []
        first = 0
        wanted = (word_ids.tolist(), words, num_merges, num_draws.tolist())
        for word_id, word, merges, times in zip(*wanted, strict=True):
            end = first + merges * times
            each = (
                [dropped[place : place + merges] for place in range(first, end, merges)]
                if merges
                else [b""] * times
            )
            first = end
            segmentations, numbers = (
                pairs.segment(word, each) if word_id != END_WORD else (ends_with, [0] * times)
            )
            draws.extend([len(found) + number for number in numbers])
            found.extend(segmentations)
        lengths = np.fromiter(map(len, found), np.int32, len(found))
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        ids = np.array([each for ids in found for each in ids], np.uint32)
        chosen = np.array(draws, np.int64)
        return [starts[chosen].astype(np.int32).tobytes(), lengths[chosen].tobytes(), ids.tobytes()]

    return work


def _cut(text: bytes, ends: Int[np.ndarray, "words"]) -> list[str]:
    words, start = [], 0
    for end in ends.tolist():
        words.append(text[start:end].decode())
        start = end
    return words
