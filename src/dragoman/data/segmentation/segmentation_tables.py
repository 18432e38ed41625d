"""Tables of sampled segmentations of each distinct word, and lookups of words in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.data.segmentation.bpe_dropout_sampling import mix_bits
from dragoman.data.store.mapped import gather
from dragoman.data.store.word_ids import END_WORD, WordIds
from dragoman.data.workers import Message
from dragoman.shapes import Int, UInt32

FEWEST_DRAWS, MOST_DRAWS = 8, 1024
NUM_GROUPS = 8
BLOCK_WORDS = 4096


@dataclass(frozen=True, kw_only=True)
class SegmentationTable:
    """Segmentations of all words of one side.

    Parameters
    ----------
    starts : Int[np.ndarray, "draws"]
        Where each draw begins among the ids.
    lengths : Int[np.ndarray, "draws"]
        How many ids it has.
    ids : UInt32[np.ndarray, "tokens"]
        The ids of all different segmentations.
    """

    starts: Int[np.ndarray, "draws"]
    lengths: Int[np.ndarray, "draws"]
    ids: UInt32[np.ndarray, "tokens"]

    @staticmethod
    def read(message: Message) -> "SegmentationTable":
        """Parse the reply of `make_segmentation_sampler`."""
        starts, lengths, ids = message
        return SegmentationTable(
            starts=np.frombuffer(starts, np.int32),
            lengths=np.frombuffer(lengths, np.int32),
            ids=np.frombuffer(ids, np.uint32),
        )

    @staticmethod
    def join(parts: Sequence["SegmentationTable"]) -> "SegmentationTable":
        """Concatenate tables."""
        ends = np.cumsum([len(part.ids) for part in parts])
        starts = [
            part.starts + np.int32(end - len(part.ids))
            for part, end in zip(parts, ends, strict=True)
        ]
        return SegmentationTable(
            starts=np.concatenate(starts),
            lengths=np.concatenate([part.lengths for part in parts]),
            ids=np.concatenate([part.ids for part in parts]),
        )


def choose_num_samples(counts: Int[np.ndarray, "words"]) -> Int[np.ndarray, "words"]:
    """Choose the number of segmentations sampled of each word.

    Returns
    -------
    Int[np.ndarray, "words"]
        As many, but not under 8, not over 8 times the root of it, and not over 1,024.
    """
    limits = (FEWEST_DRAWS * np.sqrt(counts)).astype(np.int64)
    return np.clip(np.minimum(counts, limits), FEWEST_DRAWS, MOST_DRAWS)


class SideSampler:
    """The words of one side, and the rows of the table that belong to each.

    Parameters
    ----------
    words : WordIds
        The words.

    Attributes
    ----------
    groups : range
        Words are in groups by their number; a table has those of the first group first.
    num_draws : Int[np.ndarray, "words"]
        Draws of each word.
    """

    def __init__(self, words: WordIds) -> None:
        self._words = words.words
        self._ends = words.ends
        self._texts = words.texts
        self._text_ends = words.text_ends
        self.groups = range(min(NUM_GROUPS, len(words.counts)))
        self.num_draws = choose_num_samples(words.counts)
        self.num_draws[END_WORD] = 1
        order = np.argsort(np.arange(len(self.num_draws)) % NUM_GROUPS, kind="stable")
        ends = np.cumsum(self.num_draws[order])
        self._first_draws = np.empty_like(self.num_draws)
        self._first_draws[order] = ends - self.num_draws[order]

    def requests(self, group: int) -> Iterator[Message]:
        """Yield the sampling requests of a group of words."""
        members = np.arange(group, len(self.num_draws), NUM_GROUPS)
        for first in range(0, len(members), BLOCK_WORDS):
            words = members[first : first + BLOCK_WORDS]
            texts, lengths = gather(self._texts, self._text_ends, words)
            numbers = (np.cumsum(lengths), words, self.num_draws[words])
            yield [texts.tobytes(), *(each.tobytes() for each in numbers)]

    def count_blocks(self, group: int) -> int:
        """Count the requests of a group."""
        return -(-len(range(group, len(self.num_draws), NUM_GROUPS)) // BLOCK_WORDS)

    def pick(
        self, lines: Int[np.ndarray, "rows"], key: int
    ) -> tuple[Int[np.ndarray, "places"], Int[np.ndarray, "rows"]]:
        """Pick a table row for each word of some lines."""
        starts = np.where(lines > 0, self._ends[lines - 1], 0)
        lengths = self._ends[lines] - starts
        before = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths)
        words = self._words[places]
        chances = mix_bits(places.astype(np.uint64) ^ np.uint64(key))
        chances >>= np.uint64(32)
        chances *= self.num_draws[words].astype(np.uint64)
        chances >>= np.uint64(32)
        return self._first_draws[words] + chances.astype(np.int64), lengths
