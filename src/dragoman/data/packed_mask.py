"""Attention masks of packed sentences, the counterpart of `Mask` for padded ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.data.packing import PackedSequences, Spans
from dragoman.shapes import Int


@dataclass(frozen=True, kw_only=True)
class PackedMask:
    """Which keys a query may attend to where sentences are packed.

    Parameters
    ----------
    visible : Spans
        For each query the keys it may look at.
    seen_by : Spans
        For each key the queries that may look at it: the same, read the other way.
    places : Int[Tensor, "queries"]
        Where each query stands in its sentence.
    longest : int
        Words that a sentence has at most.
    query_groups : Int[Tensor, "bounds"]
        Where the queries of each group of short sentences begin, and the last group ends.
    key_groups : Int[Tensor, "bounds"]
        Likewise their keys.
    """

    visible: Spans
    seen_by: Spans
    places: Int[Tensor, "queries"]
    longest: int
    query_groups: Int[Tensor, "bounds"]
    key_groups: Int[Tensor, "bounds"]


def bidirectional_mask(sequences: PackedSequences) -> PackedMask:
    """Make the mask of bidirectional self-attention within each sentence."""
    return _mask(sequences, sequences, sequences.own, sequences.own)


def causal_mask(sequences: PackedSequences) -> PackedMask:
    """Make the causal mask of self-attention within each sentence."""
    first, end = sequences.own
    here = torch.arange(len(first), device=first.device, dtype=first.dtype)
    visible = Spans(first, torch.minimum(here + 1, end))
    return _mask(sequences, sequences, visible, Spans(here, end))


def cross_mask(queries: PackedSequences, keys: PackedSequences) -> PackedMask:
    """Make the mask of cross-attention: each target token attends to its source sentence."""
    return _mask(queries, keys, queries.other, keys.other)


def _mask(
    queries: PackedSequences, keys: PackedSequences, visible: Spans, seen_by: Spans
) -> PackedMask:
    return PackedMask(
        visible=visible,
        seen_by=seen_by,
        places=queries.places,
        longest=queries.longest,
        query_groups=queries.groups,
        key_groups=keys.groups,
    )
