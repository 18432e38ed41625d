"""BPE-dropout: training pairs whose words are segmented anew in every pass, ahead of training.

Segmenting every word occurrence would take longer than training on it. So for every distinct
word a table of segmentations is sampled, more for frequent words, and each occurrence of the word
picks one of them, at random and anew in every pass, in a few NumPy calls. In
each pass an eighth of the words get a new table. The next pass is prepared while the
current one is trained on, and depends on seed, pass and sentence alone.
"""

import weakref
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np

from dragoman.data.batches import FlatSequences
from dragoman.data.prefetch import prefetched
from dragoman.data.segmentation.bpe_dropout_sampling import make_key, make_segmentation_sampler
from dragoman.data.segmentation.segmentation_tables import (
    NUM_GROUPS,
    SegmentationTable,
    SideSampler,
)
from dragoman.data.store.mapped import gather
from dragoman.data.store.store import PairStore
from dragoman.data.store.word_ids import store_words
from dragoman.data.workers import MOST_WORKERS, Message, count_cores, map_blocks
from dragoman.shapes import Int
from dragoman.text.vocabulary import Vocabularies

WORDS_A_PROCESS = 10_000
CHUNK_PAIRS = 1 << 14  # fits the processor's cache
_TABLE, _PICK = 1, 2  # separate random streams for the two purposes


class EpochPairs:
    """The training pairs with the segmentations of one pass.

    Parameters
    ----------
    pairs : PairStore
        The pairs as they are usually segmented.
    sides : Sequence[SideDraws]
        Their words.
    tables : Sequence[SegmentationTable]
        The segmentations of this pass, for each side.
    keys : Sequence[int]
        What decides who picks which, for each side.
    max_length : int
        A sentence that has more subwords is segmented as usual.
    """

    def __init__(
        self,
        pairs: PairStore,
        sides: Sequence[SideSampler],
        tables: Sequence[SegmentationTable],
        keys: Sequence[int],
        max_length: int,
    ) -> None:
        self._pairs = pairs
        self._sides = list(zip(sides, tables, keys, strict=True))
        self._longest = max_length + 1  # with the end symbol
        self.source_lengths, self.target_lengths = (
            self._find_lengths(side, plain)
            for side, plain in enumerate((pairs.source_lengths, pairs.target_lengths))
        )

    def ids(self, rows: Int[np.ndarray, "rows"]) -> tuple[FlatSequences, FlatSequences]:
        """Return the token ids of some pairs, each sentence ended by the end symbol."""
        lines = self._pairs.index[rows]
        source, target = (self._draw(side, lines) for side in range(2))
        if max(int(source.lengths.max()), int(target.lengths.max())) > self._longest:
            plain = self._pairs.ids(rows)
            source, target = (
                self._shorten(drawn, each)
                for drawn, each in zip((source, target), plain, strict=True)
            )
        return source, target

    def _draw(self, number: int, lines: Int[np.ndarray, "rows"]) -> FlatSequences:
        side, table, key = self._sides[number]
        draws, num_words = side.pick(lines, key)
        lengths = table.lengths[draws].astype(np.int64)
        before = np.cumsum(lengths) - lengths
        places = np.arange(int(lengths.sum())) + np.repeat(table.starts[draws] - before, lengths)
        return FlatSequences(table.ids[places], _sum_each(lengths, num_words))

    def _shorten(self, drawn: FlatSequences, plain: FlatSequences) -> FlatSequences:
        """Fall back to the deterministic segmentation for sentences that became too long."""
        is_long = drawn.lengths > self._longest
        both = FlatSequences(
            np.concatenate([drawn.ids, plain.ids]),
            np.concatenate([drawn.lengths, plain.lengths]),
        )
        lines = np.arange(len(is_long)) + np.where(is_long, len(is_long), 0)
        return gather(both.ids, np.cumsum(both.lengths), lines)

    def _find_lengths(
        self, number: int, plain: Int[np.ndarray, "pairs"]
    ) -> Int[np.ndarray, "pairs"]:
        """Count the tokens of all sentences of a side, a chunk at a time."""
        side, table, key = self._sides[number]
        found = np.empty(len(plain), np.int32)
        for first in range(0, len(plain), CHUNK_PAIRS):
            chunk = slice(first, first + CHUNK_PAIRS)
            draws, num_words = side.pick(self._pairs.index[chunk], key)
            found[chunk] = _sum_each(table.lengths[draws], num_words)
        return np.where(found > self._longest, plain, found).astype(np.int32)


@dataclass(frozen=True, kw_only=True)
class _EpochPreparer:
    """Prepares the segmentations of one pass after another."""

    pairs: PairStore
    sides: tuple[SideSampler, ...]
    setting: Message
    max_length: int
    num_workers: int

    def run(self, seed: int, first_epoch: int) -> Iterator[EpochPairs]:
        """Yield the prepared pass and all that follow it."""
        blocks = self._requests(seed, first_epoch)
        answers = map_blocks(
            make_segmentation_sampler, self.setting, blocks, num_workers=self.num_workers
        )
        parts: dict[tuple[int, int], SegmentationTable] = {}
        for epoch in count(first_epoch):
            for number, group in self._find_due(epoch, first_epoch):
                num_blocks = self.sides[number].count_blocks(group)
                parts[number, group] = SegmentationTable.join(
                    [SegmentationTable.read(next(answers)) for _ in range(num_blocks)]
                )
            tables = [
                SegmentationTable.join([parts[number, group] for group in side.groups])
                for number, side in enumerate(self.sides)
            ]
            keys = [make_key(seed, _PICK, epoch, number) for number in range(len(self.sides))]
            yield EpochPairs(self.pairs, self.sides, tables, keys, self.max_length)

    def _find_due(self, epoch: int, first_epoch: int) -> Iterator[tuple[int, int]]:
        """List the sides and groups of words that need a new table; in the first pass, all."""
        for number, side in enumerate(self.sides):
            for group in side.groups:
                if epoch == first_epoch or (epoch + group) % NUM_GROUPS == 0:
                    yield number, group

    def _requests(self, seed: int, first_epoch: int) -> Iterator[Message]:
        """Yield the sampling requests of one pass after another."""
        for epoch in count(first_epoch):
            for number, group in self._find_due(epoch, first_epoch):
                side = self.sides[number]
                key = make_key(seed, _TABLE, (epoch + group) // NUM_GROUPS, number)
                facts = np.array([number, key], np.uint64).tobytes()
                for block in side.requests(group):
                    yield [facts, *block]


class SegmentedPairs:
    """A training corpus with BPE-dropout: its words are segmented anew in every pass.

    Parameters
    ----------
    pairs : PairStore
        The pairs as they are usually segmented.
    folder : Path
        The store's folder, where the words are numbered if they are not yet.
    vocabularies : Vocabularies
        The subwords of both sides, of which `BytePairs` takes the merges.
    dropout : float
        The probability that a merge is dropped; under 1.
    max_length : int
        A sentence that a draw gives more subwords is segmented as usual in that pass.
    num_workers : int | None
        Processes that draw; None: as many as there are cores, if there are many words.

    Notes
    -----
    A word that occurs once has eight draws, and new ones every eight passes: one a pass. Of
    frequent words enough are sampled (see `choose_num_samples`) that chance hardly changes how long
    the sentences of a pass are. If corpora are mixed, a pair that a pass sees twice is segmented
    alike both times.
    """

    def __init__(
        self,
        pairs: PairStore,
        folder: Path,
        vocabularies: Vocabularies,
        *,
        dropout: float,
        max_length: int,
        num_workers: int | None = None,
    ) -> None:
        sides = tuple(SideSampler(words) for words in store_words(folder))
        num_words = sum(len(side.num_draws) for side in sides)
        num_workers = min(num_workers or count_cores(), MOST_WORKERS)
        self._preparation = _EpochPreparer(
            pairs=pairs,
            sides=sides,
            setting=[str(dropout).encode(), *(each.to_bytes() for each in vocabularies)],
            max_length=max_length,
            num_workers=min(num_workers, max(2, num_words // WORDS_A_PROCESS)),
        )
        self._next: tuple[int, int] | None = None
        self._present: tuple[tuple[int, int], EpochPairs] | None = None
        self._ahead: Generator[EpochPairs, None, None] | None = None
        self._stop: weakref.finalize | None = None

    def epoch_order(self, seed: int, epoch: int) -> Int[np.ndarray, "rows"]:
        """Draw the order in which a pass goes through the pairs."""
        return self.without_dropout.epoch_order(seed, epoch)

    @property
    def without_dropout(self) -> PairStore:
        """The pairs with the deterministic segmentation."""
        return self._preparation.pairs

    @property
    def longest(self) -> int:
        """The largest number of tokens of a sentence in any pass, the end symbol included."""
        return self._preparation.max_length + 1

    def for_epoch(self, seed: int, epoch: int) -> EpochPairs:
        """Return the pairs of a pass, and begin to prepare the next pass.

        Returns
        -------
        EpochPairs
            The same whatever passes were asked for before. It is ready at once if the last one was
            that of the pass before, and long enough ago.
        """
        wanted = (seed, epoch)
        if self._present is not None and self._present[0] == wanted:
            return self._present[1]
        if self._next != wanted:
            self.close()
            self._ahead = prefetched(self._preparation.run(seed, epoch), depth=1)
            self._stop = weakref.finalize(self, self._ahead.close)
        assert self._ahead is not None
        self._present = (wanted, next(self._ahead))
        self._next = (seed, epoch + 1)
        return self._present[1]

    def close(self) -> None:
        """Stop the background preparation."""
        if self._stop is not None:
            self._stop()
        self._ahead = self._stop = self._next = self._present = None


def _sum_each(
    values: Int[np.ndarray, "values"], counts: Int[np.ndarray, "rows"]
) -> Int[np.ndarray, "rows"]:
    """Sum consecutive segments of values; no segment is empty."""
    return np.add.reduceat(values, np.cumsum(counts) - counts, dtype=np.int64)
