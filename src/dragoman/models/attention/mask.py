"""Who may look where: a description, which each attention turns into what its kernel wants."""

from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from dragoman.data.packing import PackedSequences, Spans


@dataclass(frozen=True, kw_only=True)
class Mask:
    """Which keys a query may attend to.

    Parameters
    ----------
    key_lengths : Int[Tensor, "batch"] | None
        Real keys of each sequence; those beyond are padding. None: all are real.
    causal : bool
        Whether a query may look only at keys no later than itself.
    """

    key_lengths: Int[Tensor, "batch"] | None = None
    causal: bool = False
    _made: dict[tuple[int, int, torch.device], Tensor] = field(
        default_factory=dict, repr=False, compare=False
    )

    def may_attend(
        self, num_queries: int, num_keys: int, device: torch.device
    ) -> Bool[Tensor, "#batch 1 queries keys"]:
        """Spell the description out.

        Parameters
        ----------
        num_queries : int
            Rows.
        num_keys : int
            Columns. With a causal mask the last query stands beside the last key.
        device : torch.device
            Where the tensor shall live.

        Returns
        -------
        Bool[Tensor, "#batch 1 queries keys"]
            True where the query may look at the key.

        Notes
        -----
        Made once for each shape and kept, because every layer asks for the same.
        """
        shape = (num_queries, num_keys, device)
        if shape not in self._made:
            keys = torch.arange(num_keys, device=device)
            allowed = torch.ones(1, 1, num_queries, num_keys, dtype=torch.bool, device=device)
            if self.causal:
                queries = torch.arange(num_keys - num_queries, num_keys, device=device)
                allowed = allowed & (keys <= queries[:, None])
            if self.key_lengths is not None:
                allowed = allowed & (keys < self.key_lengths[:, None, None, None])
            self._made[shape] = allowed
        return self._made[shape]


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
    """

    visible: Spans
    seen_by: Spans
    places: Int[Tensor, "queries"]
    longest: int


def look_anywhere(sequences: PackedSequences) -> PackedMask:
    """Let the words of each sentence see all of it.

    Parameters
    ----------
    sequences : PackedSequences
        The sentences.

    Returns
    -------
    PackedMask
        The same for queries and keys.
    """
    return _mask(sequences, sequences.own, sequences.own)


def look_back(sequences: PackedSequences) -> PackedMask:
    """Let each word see itself and those before it.

    Parameters
    ----------
    sequences : PackedSequences
        The sentences.

    Returns
    -------
    PackedMask
        Causal.
    """
    first, end = sequences.own
    here = torch.arange(len(first), device=first.device, dtype=first.dtype)
    visible = Spans(first, torch.minimum(here + 1, end))
    return _mask(sequences, visible, Spans(here, end))


def look_across(queries: PackedSequences, keys: PackedSequences) -> PackedMask:
    """Let each word see the whole sentence that it translates.

    Parameters
    ----------
    queries : PackedSequences
        The translations.
    keys : PackedSequences
        What they translate.

    Returns
    -------
    PackedMask
        From one side to the other.
    """
    return _mask(queries, queries.other, keys.other)


def _mask(queries: PackedSequences, visible: Spans, seen_by: Spans) -> PackedMask:
    return PackedMask(
        visible=visible, seen_by=seen_by, places=queries.places, longest=queries.longest
    )
