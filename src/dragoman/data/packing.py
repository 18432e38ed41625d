"""Batches without padding: the sentences of a side one after another, in tensors of one size.

A packed batch has room for a fixed number of tokens on each side, whatever the sentences, so that
one shape serves a whole run and long sentences need not be kept from short ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from dragoman.data.batches import Flat

ROUNDED_TO = 128
NUM_COLUMNS = 6


class Spans(NamedTuple):
    """For each token a stretch of tokens: the first, and the one after the last."""

    first: Int[Tensor, "tokens"]
    end: Int[Tensor, "tokens"]


@dataclass(frozen=True)
class PackedSequences:
    """Several sentences one after another, then padding up to the capacity.

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
    longest : int
        Tokens that a sentence has at most.
    """

    ids: Int[Tensor, "tokens"]
    places: Int[Tensor, "tokens"]
    own: Spans
    other: Spans
    longest: int

    def shifted(self, start_id: int) -> Int[Tensor, "tokens"]:
        """Return the words that stand before each word: what a decoder reads.

        Parameters
        ----------
        start_id : int
            What stands before the first word of a sentence.

        Returns
        -------
        Int[Tensor, "tokens"]
            The ids, one place later.
        """
        return self.ids.roll(1).masked_fill(self.places == 0, start_id)


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
    """

    numbers: Int[Tensor, "all"]
    capacity: "Capacity"
    num_tokens: int
    num_target_tokens: int

    @property
    def source(self) -> PackedSequences:
        """The sentences to translate."""
        return _side(self.numbers[: NUM_COLUMNS * self.capacity.source], self.capacity.longest)

    @property
    def target(self) -> PackedSequences:
        """Their translations."""
        return _side(self.numbers[NUM_COLUMNS * self.capacity.source :], self.capacity.longest)

    @property
    def num_places(self) -> int:
        """Tokens and padding together."""
        return self.capacity.source + self.capacity.target

    def to(self, device: torch.device) -> "PackedBatch":
        """Copy to a device.

        Parameters
        ----------
        device : torch.device
            Where to.

        Returns
        -------
        PackedBatch
            The copy.
        """
        numbers = self.numbers.to(device, non_blocking=True)
        return PackedBatch(numbers, self.capacity, self.num_tokens, self.num_target_tokens)

    def pinned(self) -> "PackedBatch":
        """Move to memory from which a CUDA device fetches while the host goes on.

        Returns
        -------
        PackedBatch
            The same.
        """
        numbers = self.numbers.pin_memory()
        return PackedBatch(numbers, self.capacity, self.num_tokens, self.num_target_tokens)


class Capacity(NamedTuple):
    """Places of each side of a packed batch, and tokens of its longest sentence at most."""

    source: int
    target: int
    longest: int

    def share(self, num_parts: int) -> "Capacity":
        """Say how much room one of several parts of a batch needs.

        Parameters
        ----------
        num_parts : int
            How many parts the batch is divided into, of about equally many tokens.

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
    """Choose the size of packed batches.

    Parameters
    ----------
    source_lengths : Int[np.ndarray, "pairs"]
        Tokens of each source sentence.
    target_lengths : Int[np.ndarray, "pairs"]
        Tokens of each target sentence.
    batch_tokens : int
        Tokens of a batch, source plus target.

    Returns
    -------
    Capacity
        Room for so many, divided between the sides as the corpus is.
    """
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

    Parameters
    ----------
    source_lengths : Int[np.ndarray, "pairs"]
        Tokens of each source sentence.
    target_lengths : Int[np.ndarray, "pairs"]
        Tokens of each target sentence.
    order : Int[np.ndarray, "rows"]
        The pairs in the order in which they are to be seen.
    capacity : Capacity
        Room on each side.

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


def pack(source: Flat, target: Flat, pad_id: int, capacity: Capacity) -> PackedBatch:
    """Make a packed batch of sentence pairs.

    Parameters
    ----------
    source : Flat
        Token ids of the source sentences.
    target : Flat
        Token ids of their translations.
    pad_id : int
        The padding.
    capacity : Capacity
        Room on each side; if the sentences need more, the batch is larger.

    Returns
    -------
    PackedBatch
        On the CPU.
    """
    needed = (len(source.ids), len(target.ids))
    room = Capacity(
        capacity.source if needed[0] <= capacity.source else _rounded(needed[0]),
        capacity.target if needed[1] <= capacity.target else _rounded(needed[1]),
        max(capacity.longest, int(source.lengths.max()), int(target.lengths.max())),
    )
    numbers = np.empty(NUM_COLUMNS * (room.source + room.target), dtype=np.int32)
    parts = np.split(numbers, [NUM_COLUMNS * room.source])
    for part, own, other in ((parts[0], source, target), (parts[1], target, source)):
        columns = part.reshape(NUM_COLUMNS, -1)
        num_tokens = len(own.ids)
        columns[0, :num_tokens] = own.ids
        columns[0, num_tokens:] = pad_id
        for row, (lengths, is_end) in enumerate(
            (
                (own.lengths, False),
                (own.lengths, True),
                (other.lengths, False),
                (other.lengths, True),
            ),
            start=2,
        ):
            ends = np.cumsum(lengths)
            columns[row, :num_tokens] = np.repeat(ends if is_end else ends - lengths, own.lengths)
            columns[row, num_tokens:] = ends[-1]
        columns[1, :num_tokens] = np.arange(num_tokens) - columns[2, :num_tokens]
        columns[1, num_tokens:] = 0
    return PackedBatch(torch.from_numpy(numbers), room, sum(needed), needed[1])


def _side(numbers: Tensor, longest: int) -> PackedSequences:
    """Take the tensor of one side apart."""
    ids, places, first, end, other_first, other_end = numbers.view(NUM_COLUMNS, -1)
    return PackedSequences(ids, places, Spans(first, end), Spans(other_first, other_end), longest)


def _rounded(count: float) -> int:
    """Round up to what matrix products like."""
    return int(-(-count // ROUNDED_TO)) * ROUNDED_TO
