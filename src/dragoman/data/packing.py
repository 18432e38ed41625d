"""Packed batches: the sentences of a side concatenated without padding, in tensors of fixed size.

A packed batch has a fixed capacity of tokens on each side, so that
one shape serves a whole run, and sentences of all lengths can be mixed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from dragoman.data.batches import FlatSequences
from dragoman.data.store.mapped import gather
from dragoman.shapes import Int

ROUNDED_TO, FINELY = 128, 32
NUM_COLUMNS = 6
# Sentences up to this length on both sides are short, and are grouped up to this length in all.
TILE = 64


class Spans(NamedTuple):
    """For each token a range of tokens: the first, and the one after the last."""

    first: Int[Tensor, "tokens"]
    end: Int[Tensor, "tokens"]


@dataclass(frozen=True)
class PackedSequences:
    """Concatenated sentences, with padding up to the capacity.

    Parameters
    ----------
    ids : Int[Tensor, "tokens"]
        The tokens, each sentence ended by the end symbol.
    places : Int[Tensor, "tokens"]
        Where each token stands in its sentence, counted from 0.
    own : Spans
        The sentence that each token belongs to.
    other : Spans
        Its translation, on the other side.
    groups : Int[Tensor, "bounds"]
        Where groups of short sentences begin, and the last one ends; the rest of them are empty.
    longest : int
        Tokens that a sentence has at most.
    masked_ids : Int[Tensor, "tokens"] | None
        The ids as embeddings read them, where that is not what was said; None: they do.
    """

    ids: Int[Tensor, "tokens"]
    places: Int[Tensor, "tokens"]
    own: Spans
    other: Spans
    groups: Int[Tensor, "bounds"]
    longest: int
    masked_ids: Int[Tensor, "tokens"] | None = None

    @property
    def read_ids(self) -> Int[Tensor, "tokens"]:
        """The ids that the embedding reads."""
        return self.ids if self.masked_ids is None else self.masked_ids

    def shifted(self, start_id: int) -> Int[Tensor, "tokens"]:
        """Shift right within each sentence: the input of the decoder."""
        return self.read_ids.roll(1).masked_fill(self.places == 0, start_id)


@dataclass(frozen=True)
class PackedBatch:
    """Sentence pairs without padding.

    Parameters
    ----------
    numbers : Int[Tensor, "all"]
        Everything about both sides in one tensor, so that it travels to a device in one piece.
    capacity : Capacity
        Places of each side.
    num_tokens : int
        Real tokens, source plus target.
    num_target_tokens : int
        Real target tokens.
    masked_ids : Int[Tensor, "places"] | None
        The ids of both sides as embeddings read them, where that is not what was said.
    """

    numbers: Int[Tensor, "all"]
    capacity: "Capacity"
    num_tokens: int
    num_target_tokens: int
    masked_ids: Int[Tensor, "places"] | None = None

    @property
    def source(self) -> PackedSequences:
        """The sentences to translate."""
        return self._side(0, self.capacity.source, 0)

    @property
    def target(self) -> PackedSequences:
        """Their translations."""
        return self._side(NUM_COLUMNS * self.capacity.source, self.capacity.target, 1)

    def _side(self, start: int, size: int, row: int) -> PackedSequences:
        """Return the view of one side in the shared tensor."""
        columns = self.numbers[start : start + NUM_COLUMNS * size].view(NUM_COLUMNS, size)
        ids, places, first, end, other_first, other_end = columns
        groups = self.numbers[NUM_COLUMNS * self.num_places :].view(2, -1)[row]
        masked_ids = (
            None if self.masked_ids is None else self.masked_ids.split(self.capacity[:2])[row]
        )
        return PackedSequences(
            ids, places, Spans(first, end), Spans(other_first, other_end), groups,
            self.capacity.longest, masked_ids,
        )  # fmt: skip

    @property
    def num_places(self) -> int:
        """Tokens and padding together."""
        return self.capacity.source + self.capacity.target

    def to(self, device: torch.device) -> "PackedBatch":
        """Copy to a device."""
        masked_ids = (
            None if self.masked_ids is None else self.masked_ids.to(device, non_blocking=True)
        )
        return replace(
            self, numbers=self.numbers.to(device, non_blocking=True), masked_ids=masked_ids
        )

    def pinned(self) -> "PackedBatch":
        """Move to pinned memory, for asynchronous copies to a CUDA device."""
        masked_ids = None if self.masked_ids is None else self.masked_ids.pin_memory()
        return replace(self, numbers=self.numbers.pin_memory(), masked_ids=masked_ids)


class Capacity(NamedTuple):
    """Places of each side of a packed batch, and tokens of its longest sentence at most."""

    source: int
    target: int
    longest: int

    def share(self, num_parts: int) -> "Capacity":
        """Return the capacity of one of several parts of a batch.

        Returns
        -------
        Capacity
            Its share, and a little more on each side, as the parts are not quite alike.
        """
        if num_parts == 1:
            return self
        source, target = (_rounded(1.03 * each / num_parts + 32) for each in self[:2])
        return Capacity(source, target, self.longest)


def choose_capacity(
    source_lengths: Int[np.ndarray, "pairs"],
    target_lengths: Int[np.ndarray, "pairs"],
    batch_tokens: int,
) -> Capacity:
    """Choose the size of packed batches."""
    source, target = int(source_lengths.sum()), int(target_lengths.sum())
    share = source / (source + target)
    longest = max(int(source_lengths.max()), int(target_lengths.max()))
    return Capacity(_rounded(batch_tokens * share), _rounded(batch_tokens * (1 - share)), longest)


def plan_packed(
    source_lengths: Int[np.ndarray, "pairs"],
    target_lengths: Int[np.ndarray, "pairs"],
    order: Int[np.ndarray, "rows"],
    capacity: Capacity,
) -> Iterator[Int[np.ndarray, "rows"]]:
    """Divide the corpus into packed batches for one pass over it.

    Yields
    ------
    Int[np.ndarray, "rows"]
        The pairs of one batch: the next of the order until one side is full. If few are left for
        the last one it shares with the one before, so that no update rests on a handful.

    Notes
    -----
    Sentences come as the order has them: packing needs no similar lengths, so a batch is a random
    sample of the corpus, which batches of similar lengths are not.
    """
    ends = [
        np.cumsum(lengths[order], dtype=np.int64) for lengths in (source_lengths, target_lengths)
    ]
    start, cuts = 0, [0]
    while start < len(order):
        end = len(order)
        for each, room in zip(ends, capacity[:2], strict=True):
            before = int(each[start - 1]) if start else 0
            end = min(end, int(np.searchsorted(each, before + room, side="right")))
        start = max(end, start + 1)
        cuts.append(start)
    if len(cuts) > 2 and cuts[-1] - cuts[-2] < (cuts[-2] - cuts[-3]) / 2:
        cuts[-2] = (cuts[-3] + cuts[-1] + 1) // 2
    for first, end in pairwise(cuts):
        yield order[first:end]


def pack(
    source: FlatSequences, target: FlatSequences, pad_id: int, capacity: Capacity
) -> PackedBatch:
    """Make a packed batch of sentence pairs."""
    needed = (len(source.ids), len(target.ids))
    room = Capacity(
        capacity.source if needed[0] <= capacity.source else _rounded(needed[0], FINELY),
        capacity.target if needed[1] <= capacity.target else _rounded(needed[1], FINELY),
        max(capacity.longest, int(source.lengths.max()), int(target.lengths.max())),
    )
    order, group_ends = arrange(source.lengths, target.lengths)
    source, target = (
        gather(each.ids, np.cumsum(each.lengths), np.array(order)) for each in (source, target)
    )
    num_places, bounds = room.source + room.target, num_groups(room.source + room.target) + 1
    numbers = np.empty(NUM_COLUMNS * num_places + 2 * bounds, dtype=np.int32)
    parts = np.split(numbers, [NUM_COLUMNS * room.source, NUM_COLUMNS * num_places])
    ends = [np.cumsum(side.lengths) for side in (source, target)]
    for bound, side_ends in zip(parts[2].reshape(2, bounds), ends, strict=True):
        group_bounds = side_ends[np.array(group_ends, dtype=np.int64) - 1]
        bound[0] = 0
        bound[1 : len(group_bounds) + 1] = group_bounds
        bound[len(group_bounds) + 1 :] = group_bounds[-1] if len(group_bounds) else 0
    stretches = [
        (end - side.lengths, end) for side, end in zip((source, target), ends, strict=True)
    ]
    for part, own, (own_spans, other_spans) in (
        (parts[0], source, stretches),
        (parts[1], target, stretches[::-1]),
    ):
        columns = part.reshape(NUM_COLUMNS, -1)
        num_tokens = len(own.ids)
        columns[0, :num_tokens] = own.ids
        columns[0, num_tokens:] = pad_id
        for row, of_sentences in enumerate((*own_spans, *other_spans), start=2):
            columns[row, :num_tokens] = np.repeat(of_sentences, own.lengths)
        columns[2:4, num_tokens:] = own_spans[1][-1]
        columns[4:6, num_tokens:] = other_spans[1][-1]
        columns[1, :num_tokens] = np.arange(num_tokens) - columns[2, :num_tokens]
        columns[1, num_tokens:] = 0
    return PackedBatch(torch.from_numpy(numbers), room, sum(needed), needed[1])


def arrange(
    source_lengths: Int[np.ndarray, "pairs"], target_lengths: Int[np.ndarray, "pairs"]
) -> tuple[list[int], list[int]]:
    """Group short sentences greedily, the longest with the shortest, so that few groups hold all.

    Returns
    -------
    tuple[list[int], list[int]]
        The pairs in their new order, the long ones at the end; and after how many pairs each group
        ends.

    Notes
    -----
    A group takes the longest pair left, and of the shortest as many as still fit on both sides. So
    all groups but one are more than half full on a side, which bounds their number: see
    `num_groups`.
    """
    sizes = np.maximum(source_lengths, target_lengths)
    order = np.argsort(-sizes, kind="stable").tolist()
    num_long = int((sizes > TILE).sum())
    sources, targets = source_lengths.tolist(), target_lengths.tolist()
    arranged: list[int] = []
    ends: list[int] = []
    left, right = num_long, len(order) - 1
    while left <= right:
        pair, left = order[left], left + 1
        source, target = sources[pair], targets[pair]
        arranged.append(pair)
        while left <= right:
            pair = order[right]
            source, target = source + sources[pair], target + targets[pair]
            if source > TILE or target > TILE:
                break
            arranged.append(pair)
            right -= 1
        ends.append(len(arranged))
    return arranged + order[:num_long], ends


def num_groups(num_places: int) -> int:
    """Return the largest possible number of groups of short sentences."""
    return 2 * num_places // TILE + 1


def _rounded(count: float, to: int = ROUNDED_TO) -> int:
    """Round up to a multiple that suits matrix products."""
    return int(-(-count // to)) * to
