"""Padded batches: bucketed by length, limited in tokens, in a seeded random order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.shapes import Bool, Int, Integer

POOL_PAIRS = 1 << 20


@dataclass(frozen=True)
class Sequences:
    """Sentences as token ids, padded at the end to the longest.

    Parameters
    ----------
    ids : Int[Tensor, "batch length"]
        The tokens, each sentence ended by the end symbol, then padding.
    lengths : Int[Tensor, "batch"]
        Real tokens of each sentence, the end symbol included.
    masked_ids : Int[Tensor, "batch length"] | None
        The ids as embeddings read them, where that is not what was said; None: they do.
    """

    ids: Int[Tensor, "batch length"]
    lengths: Int[Tensor, "batch"]
    masked_ids: Int[Tensor, "batch length"] | None = None

    @property
    def read_ids(self) -> Int[Tensor, "batch length"]:
        """The ids that the embedding reads."""
        return self.ids if self.masked_ids is None else self.masked_ids

    @property
    def is_token(self) -> Bool[Tensor, "batch length"]:
        """True where there is a token, False where there is padding."""
        places = torch.arange(self.ids.size(1), device=self.ids.device)
        return places < self.lengths[:, None]

    def shifted(self, start_id: int) -> Int[Tensor, "batch length"]:
        """Shift right: the input of the decoder, beginning with the start symbol."""
        words = self.read_ids
        start = torch.full_like(words[:, :1], start_id)
        return torch.cat([start, words[:, :-1]], dim=1)

    def without_end(self) -> "Sequences":
        """Leave the end symbols out, but that of an empty sentence."""
        return replace(self, lengths=(self.lengths - 1).clamp(min=1))

    def to(self, device: torch.device) -> "Sequences":
        """Copy to a device."""
        masked_ids = None if self.masked_ids is None else self.masked_ids.to(device)
        return Sequences(self.ids.to(device), self.lengths.to(device), masked_ids)


@dataclass(frozen=True)
class Batch:
    """Sentence pairs.

    Parameters
    ----------
    source : Sequences
        The sentences to translate.
    target : Sequences
        Their translations.
    num_tokens : int
        Real tokens, source plus target.
    num_target_tokens : int
        Real target tokens.
    """

    source: Sequences
    target: Sequences
    num_tokens: int
    num_target_tokens: int

    def to(self, device: torch.device) -> "Batch":
        """Copy to a device."""
        source, target = self.source.to(device), self.target.to(device)
        return Batch(source, target, self.num_tokens, self.num_target_tokens)

    @property
    def num_places(self) -> int:
        """Tokens and padding together."""
        return self.source.ids.numel() + self.target.ids.numel()


class FlatSequences(NamedTuple):
    """Sentences as one flat array of ids, with their lengths."""

    ids: Integer[np.ndarray, "tokens"]
    lengths: Int[np.ndarray, "batch"]


def flatten(sequences: Sequence[Sequence[int]]) -> FlatSequences:
    """Concatenate sequences."""
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    ids = np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum()))
    return FlatSequences(ids, lengths)


def pad_sequences(sequences: FlatSequences, pad_id: int) -> Sequences:
    """Pad flat sequences into a matrix."""
    lengths = sequences.lengths.astype(np.int64)
    ids = np.full((len(lengths), int(lengths.max())), pad_id, dtype=np.int64)
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = sequences.ids
    return Sequences(torch.from_numpy(ids), torch.from_numpy(lengths))


def make_batch(source: FlatSequences, target: FlatSequences, pad_id: int) -> Batch:
    """Make a batch of sentence pairs."""
    num_tokens = len(source.ids) + len(target.ids)
    padded_source, padded_target = pad_sequences(source, pad_id), pad_sequences(target, pad_id)
    return Batch(padded_source, padded_target, num_tokens, len(target.ids))


def plan_epoch(
    source_lengths: Int[np.ndarray, "pairs"],
    target_lengths: Int[np.ndarray, "pairs"],
    order: Int[np.ndarray, "seen"],
    *,
    batch_tokens: int,
    seed: int,
    epoch: int,
) -> Iterator[Int[np.ndarray, "rows"]]:
    """Divide the corpus into shuffled batches for one pass.

    Parameters
    ----------
    source_lengths : Int[np.ndarray, "pairs"]
        Tokens of each source sentence.
    target_lengths : Int[np.ndarray, "pairs"]
        Tokens of each target sentence.
    order : Int[np.ndarray, "seen"]
        The pairs that the pass is to see, shuffled, as `PairStore.epoch_order` draws them.
    batch_tokens : int
        Tokens of a batch, source plus target.
    seed : int
        The run's seed.
    epoch : int
        The pass. Order, seed and pass alone decide the plan, so it can be made again to resume.

    Notes
    -----
    The shuffled pairs are dealt into pools of a million; within a pool, similar lengths come
    together and the finished batches are shuffled.
    """
    random = np.random.default_rng([seed, epoch, 1])  # a seed other than that of the order
    num_pools = max(1, round(len(order) / POOL_PAIRS))
    for pool in np.array_split(order, num_pools):
        batches = group_by_length(source_lengths[pool], target_lengths[pool], batch_tokens)
        for index in random.permutation(len(batches)):
            yield pool[batches[index]]


def split_rows(
    rows: Int[np.ndarray, "rows"], tokens: Int[np.ndarray, "rows"], num_parts: int
) -> list[Int[np.ndarray, "part"]]:
    """Split the pairs of an update into parts with about equally many tokens.

    Returns
    -------
    list[Int[np.ndarray, "part"]]
        All pairs in their order, so that similar lengths stay together. Every share has at least
        one pair if there are enough; else the first shares have one each and the rest none.

    Notes
    -----
    No share has more tokens than an equal one and the longest pair together.
    """
    num_filled = min(num_parts, len(rows))
    places = np.arange(1, num_filled)
    middles = np.cumsum(tokens, dtype=np.int64) - tokens / 2
    wanted = np.searchsorted(middles, places * (int(tokens.sum()) / max(1, num_filled)))
    # No part is empty while there are pairs enough.
    starts = np.maximum.accumulate(np.maximum(wanted, 1) - places) + places
    starts = np.minimum(starts, len(rows) - num_filled + places)
    empty = [rows[:0]] * (num_parts - num_filled)
    return [*np.split(rows, starts), *empty]


def group_by_length(
    source_lengths: Int[np.ndarray, "pairs"],
    target_lengths: Int[np.ndarray, "pairs"],
    batch_tokens: int,
) -> list[Int[np.ndarray, "rows"]]:
    """Group pairs into batches in which both sides have similar lengths.

    Notes
    -----
    Pairs are laid in slabs of similar target length and each slab is sorted by source length.
    One slab would sort by the source alone, one slab a batch by the target alone; of a few
    numbers between, the one with the least padding is taken.
    """
    tokens = source_lengths + target_lengths
    num_batches = max(1, -(-int(tokens.sum()) // batch_tokens))
    by_target = np.lexsort((source_lengths, target_lengths))
    best: list[np.ndarray] = []
    least_places = None
    for share in (0.35, 0.5, 0.7, 1.0, 1.4, 2.0):
        num_slabs = min(num_batches, max(1, round(share * num_batches**0.5)))
        slab_ends = np.cumsum(tokens[by_target]) * num_slabs // (int(tokens.sum()) + 1)
        slab = np.empty(len(tokens), dtype=np.int64)
        slab[by_target] = slab_ends
        order = np.lexsort((target_lengths, source_lengths, slab))
        batches = _cut(order, tokens[order], batch_tokens)
        places = sum(
            len(rows) * int(source_lengths[rows].max() + target_lengths[rows].max())
            for rows in batches
        )
        if least_places is None or places < least_places:
            best, least_places = batches, places
    return best


def _cut(order: np.ndarray, tokens: np.ndarray, batch_tokens: int) -> list[np.ndarray]:
    """Cut an order into consecutive batches of about equally many tokens."""
    total = int(tokens.sum())
    num_batches = max(1, round(total / batch_tokens))
    middles = np.cumsum(tokens) - tokens / 2
    numbers = np.minimum((middles * num_batches / total).astype(np.int64), num_batches - 1)
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    return np.split(order, starts[1:])
