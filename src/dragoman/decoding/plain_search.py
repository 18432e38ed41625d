"""Searches in which nothing is demanded but the most probable words, by engines with their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from dragoman.decoding.demands import Demands
from dragoman.decoding.interface import MOST_BEAMS, Asking, FindingEngine, Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.piece import Found, Piece
from dragoman.text.vocabulary import Vocabularies

_NOTHING = Hypothesis(tokens=(), log_probability=-inf, score=-inf, token_log_probabilities=(-inf,))


def is_plain(options: SearchOptions, demands: Demands) -> bool:
    """Say whether an engine with a search of its own can do what is asked.

    Parameters
    ----------
    options : SearchOptions
        How to search.
    demands : Demands
        What else must be; terms of a glossary do not count, which not all pieces have.

    Returns
    -------
    bool
        True if the most probable words are asked for, and nothing else.
    """
    return (
        demands.sampling is None
        and demands.forbidden is None
        and not options.coverage_penalty
        and options.beam_size <= MOST_BEAMS
    )


@dataclass(frozen=True, kw_only=True)
class PlainSearch:
    """Searches for translations of pieces of text, with nothing demanded of them.

    Parameters
    ----------
    engine : FindingEngine
        What searches.
    vocabularies : Vocabularies
        Its subwords.
    max_length : int | None
        The longest sequence that it can write; None: any.
    options : SearchOptions
        How to search.
    num_best : int
        Translations of a piece.
    prefix_ids : Sequence[int]
        Subwords with which the translation of a text's first piece must begin.
    is_scored : bool
        Whether anybody will look at scores.
    """

    engine: FindingEngine
    vocabularies: Vocabularies
    max_length: int | None
    options: SearchOptions
    num_best: int
    prefix_ids: Sequence[int]
    is_scored: bool

    def find(
        self, pieces: Sequence[Piece], *, is_unrepeated: bool = False
    ) -> list[list[Hypothesis]]:
        """Translate pieces.

        Parameters
        ----------
        pieces : Sequence[Piece]
            In any order.
        is_unrepeated : bool
            Whether no phrase may be said three times in a row; the engine must know how.

        Returns
        -------
        list[list[Hypothesis]]
            In that order, for each its translations, best first.
        """
        prefixes = [self.prefix_ids if piece.is_first else () for piece in pieces]
        limits = [
            len(piece.ids) + self.options.max_extra_tokens + len(prefix)
            for piece, prefix in zip(pieces, prefixes, strict=True)
        ]
        if self.max_length is not None:
            limits = [min(limit, self.max_length) for limit in limits]
        num_beams = self.options.beam_size
        asking = Asking(
            num_beams=num_beams,
            num_best=self.num_best,
            alpha=self.options.length_penalty,
            banned_ids=banned_ids(self.vocabularies),
            is_scored=self.is_scored or num_beams > 1,
            is_unrepeated=is_unrepeated,
        )
        return self.engine.find([piece.ids for piece in pieces], limits, asking, prefixes)


def banned_ids(vocabularies: Vocabularies) -> tuple[int, ...]:
    """List the subwords that must not occur.

    Parameters
    ----------
    vocabularies : Vocabularies
        All subwords.

    Returns
    -------
    tuple[int, ...]
        The unknown one, unless something is put in its place afterwards.
    """
    return () if vocabularies.is_closed else (vocabularies.target.unk_id,)


def or_nothing(found: Found) -> Found:
    """Give a piece for which nothing was found an empty translation, and a note.

    Parameters
    ----------
    found : Found
        What was found for it.

    Returns
    -------
    Found
        With at least one hypothesis.
    """
    if found.hypotheses:
        return found
    return Found(hypotheses=[_NOTHING], notes=(*found.notes, "found no translation"))
