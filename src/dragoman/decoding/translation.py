"""Translations, and how one is put together from those of its text's parts."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from dragoman.decoding.interface import Hypothesis
from dragoman.decoding.length_penalty import length_penalty
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.piece import Piece


class TranslatedPart(NamedTuple):
    """A part of a text that was translated by itself, and whether white space follows it."""

    source: str
    text: str
    is_spaced: bool


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A translated text.

    Parameters
    ----------
    text : str
        The best translation.
    score : float
        Its log-probability over its length penalty, plus its coverage penalty if one is asked for:
        nearer to zero is better.
    alternatives : tuple[Translation, ...]
        The next best ones, best first.
    parts : tuple[TranslatedPart, ...]
        Of what it was put together: one part, or several if the text was too long for the model.
    tokens : tuple[int, ...]
        Its subwords, an end symbol after each part.
    log_probabilities : tuple[float, ...]
        Theirs; nothing if scores were not asked for.
    notes : tuple[str, ...]
        What of the demands could not be met, in words.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()
    parts: tuple[TranslatedPart, ...] = ()
    tokens: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()


class Part(NamedTuple):
    """A piece, its translations, best first, and what of the demands could not be met."""

    piece: Piece
    candidates: list[tuple[str, Hypothesis]]
    notes: tuple[str, ...] = ()


def join_parts(
    parts: list[Part], options: SearchOptions, eos_id: int, is_distinct: bool
) -> Translation:
    """Put the translations of a text's pieces together, the best of each first.

    Parameters
    ----------
    parts : list[Part]
        The pieces in order, each with its translations; none: the text has no words.
    options : SearchOptions
        How they were searched for.
    eos_id : int
        The end symbol.
    is_distinct : bool
        Whether translations that read the same count once.

    Returns
    -------
    Translation
        The best, with the others as alternatives.
    """
    if not parts:
        return Translation(text="", score=0.0)
    most = max(len(part.candidates) for part in parts)
    if most == 1:
        return _compose(parts, [part.candidates[0] for part in parts], options, eos_id)
    ranked: dict[str | int, Translation] = {}
    for rank in range(most):
        chosen = [part.candidates[min(rank, len(part.candidates) - 1)] for part in parts]
        made = _compose(parts, chosen, options, eos_id)
        key = made.text if is_distinct else rank
        if key not in ranked or ranked[key].score < made.score:
            ranked[key] = made
    best, *others = sorted(ranked.values(), key=lambda each: -each.score)
    return replace(best, alternatives=tuple(others)) if others else best


def _compose(
    parts: list[Part], chosen: list[tuple[str, Hypothesis]], options: SearchOptions, eos_id: int
) -> Translation:
    """Make a translation of one candidate for each part."""
    made, total = [], 0.0
    tokens: list[int] = []
    log_probabilities: list[float] = []
    for part, (text, each) in zip(parts, chosen, strict=True):
        made.append(TranslatedPart(part.piece.text, text, bool(part.piece.space)))
        tokens += [*each.tokens, eos_id]
        log_probabilities += each.token_log_probabilities
        total += each.log_probability
    score = total / float(length_penalty(len(tokens), options.length_penalty))
    if options.coverage_penalty:
        score += sum(_neglect(each, options) for _, each in chosen)
    return Translation(
        text="".join(each.text + " " * each.is_spaced for each in made).strip(),
        score=score,
        parts=tuple(made),
        tokens=tuple(tokens),
        log_probabilities=tuple(log_probabilities),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _neglect(hypothesis: Hypothesis, options: SearchOptions) -> float:
    """Find the coverage penalty in a hypothesis's score."""
    penalty = length_penalty(len(hypothesis.tokens) + 1, options.length_penalty)
    return hypothesis.score - hypothesis.log_probability / float(penalty)
