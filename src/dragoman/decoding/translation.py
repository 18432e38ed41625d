"""Translations, put together from the translations of a text's segments."""

import unicodedata
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dragoman.decoding.confidence import Calibration, Evidence
from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.length_penalty import length_penalty
from dragoman.decoding.segment import Segment
from dragoman.shapes import Float
from dragoman.text.vocabulary import Vocabularies


@dataclass(frozen=True, eq=False)
class Attended:
    """Attention of a translation's tokens to source tokens.

    Parameters
    ----------
    source, target : tuple[int, ...]
        The subwords, without end symbols.
    weights : Float[np.ndarray, "targets sources"]
        Summed over layers and heads.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    weights: Float[np.ndarray, "targets sources"]


class TranslatedPart(NamedTuple):
    """A segment, its translation and the space that follows.

    `attended` is there if it was asked for and the engine told it.
    """

    source: str
    text: str
    space: str
    attended: Attended | None = None


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
        Of what it was put together: one part, or several if the text was split.
    tokens : tuple[int, ...]
        Its subwords, an end symbol after each part.
    log_probabilities : tuple[float, ...]
        Theirs; nothing if scores were not asked for.
    notes : tuple[str, ...]
        What looked wrong, and what of the constraints could not be met, in words.
    evidence : tuple[Evidence, ...]
        By what the confidence in each part is computed when somebody asks for it.
    calibration : Calibration | None
        How; None: the model folder has none, or several models translated together.
    """

    text: str
    score: float
    alternatives: tuple["Translation", ...] = ()
    parts: tuple[TranslatedPart, ...] = ()
    tokens: tuple[int, ...] = ()
    log_probabilities: tuple[float, ...] = ()
    notes: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = field(default=(), compare=False, repr=False)
    calibration: Calibration | None = field(default=None, compare=False, repr=False)

    @cached_property
    def part_confidences(self) -> tuple[float, ...] | None:
        """The calibrated probability that the translation of each part is good.

        Notes
        -----
        None: the model folder has no calibration (``dragoman evaluate --calibrate`` makes one), or
        only one of other weights; several models translated together; or nobody wanted scores.
        """
        if not (self.calibration and all(each.log_probabilities for each in self.evidence)):
            return None
        return tuple(map(self.calibration.regression.predict, self.evidence))

    @cached_property
    def confidence(self) -> float | None:
        """The share of the parts that can be expected to be good; of a sentence the probability.

        Notes
        -----
        The mean of `part_confidences`: if these are calibrated, so is it, whatever their parts have
        to do with each other, and it means the same for long texts as for short ones. The lowest of
        them shows where to look. A text without words is translated well. None as there.
        """
        found = self.part_confidences
        if found is None:
            return None
        return sum(found) / len(found) if found else 1.0


class Part(NamedTuple):
    """A segment, its candidate translations, best first, and notes.

    Attributes
    ----------
    segment : Segment
        The segment.
    candidates : list[tuple[str, Hypothesis]]
        What it may become.
    notes : tuple[str, ...]
        What looked wrong, and what of the constraints could not be met.
    anew : SearchOptions | None
        With which options a second search found them; None: the first search did.
    is_suspicious : bool
        Whether the first search found what cannot be right.
    """

    segment: Segment
    candidates: list[tuple[str, Hypothesis]]
    notes: tuple[str, ...] = ()
    anew: SearchOptions | None = None
    is_suspicious: bool = False


def join_parts(
    parts: list[Part],
    options: SearchOptions,
    vocabularies: Vocabularies,
    is_distinct: bool,
    calibration: Calibration | None,
) -> Translation:
    """Join the translations of a text's segments, the best of each first.

    Parameters
    ----------
    parts : list[Part]
        The segments in order, each with its translations; none: the text has no words.
    options : SearchOptions
        How they were searched for at first, by which all are scored.
    vocabularies : Vocabularies
        The model's.
    is_distinct : bool
        Whether translations that read the same count once.
    calibration : Calibration | None
        How confidence is computed; None: it is not.

    Returns
    -------
    Translation
        The best, with the others as alternatives: sorted by score, or, where a part was searched
        for again, in the order of that search, since the first one's scores prefer what was wrong.
    """
    if not parts:
        return Translation(text="", score=0.0, calibration=calibration)

    def compose(chosen: list[tuple[str, Hypothesis]]) -> Translation:
        made = _compose(parts, chosen, options, vocabularies)
        return replace(made, calibration=calibration) if calibration else made

    most = max(len(part.candidates) for part in parts)
    if most == 1:
        return compose([part.candidates[0] for part in parts])
    is_anew = any(part.anew is not None for part in parts)
    ranked: dict[str | int, Translation] = {}
    for rank in range(most):
        chosen = [part.candidates[min(rank, len(part.candidates) - 1)] for part in parts]
        made = compose(chosen)
        key = made.text if is_distinct else rank
        if key not in ranked or (ranked[key].score < made.score and not is_anew):
            ranked[key] = made
    best, *others = sorted(ranked.values(), key=lambda each: 0.0 if is_anew else -each.score)
    return replace(best, alternatives=tuple(others)) if others else best


def find_space(source: str, space: str, translation: str) -> str:
    """Choose the space between the translations of two segments.

    Parameters
    ----------
    source : str
        The part, without white space after it.
    space : str
        The white space after it.
    translation : str
        What it became.

    Returns
    -------
    str
        The same white space; a blank where Chinese or Japanese needs none, but the target does; no
        blank after nothing, though line breaks stay.
    """
    if not translation:
        return space if space.strip(" \t\u00a0") else ""
    if space or not source:
        return space
    return " " if _is_wide(source[-1]) and not _is_wide(translation[-1]) else ""


def _is_wide(character: str) -> bool:
    """Whether a character is full-width, after which no space stands."""
    return unicodedata.east_asian_width(character) in "WF"


def _compose(
    parts: list[Part],
    chosen: list[tuple[str, Hypothesis]],
    options: SearchOptions,
    vocabularies: Vocabularies,
) -> Translation:
    """Make a translation from one candidate for each segment."""
    made, total = [], 0.0
    tokens: list[int] = []
    log_probabilities: list[float] = []
    evidence = []
    source_unk_id, target_unk_id = (each.unk_id for each in vocabularies)
    for part, (text, each) in zip(parts, chosen, strict=True):
        space = find_space(part.segment.text.rstrip(), part.segment.space, text)
        attended = None
        if each.attention is not None:
            num_marks = part.segment.num_marks
            source = part.segment.ids[num_marks:-1]
            attended = Attended(source, each.tokens, each.attention[:, num_marks:])
        made.append(TranslatedPart(part.segment.text, text, space, attended))
        logs, ids = each.token_log_probabilities, part.segment.ids
        num_unknown = ids.count(source_unk_id) + each.tokens.count(target_unk_id)
        evidence.append(
            Evidence(part.segment.text, text, len(ids), logs, num_unknown, part.is_suspicious)
        )
        tokens += [*each.tokens, vocabularies.eos_id]
        log_probabilities += logs
        total += each.log_probability
    score = total / float(length_penalty(len(tokens), options.length_penalty))
    if options.coverage_penalty:
        score += sum(
            _neglect(each, part.anew or options)
            for part, (_, each) in zip(parts, chosen, strict=True)
        )
    return Translation(
        text="".join(each.text + each.space for each in made).strip(),
        score=score,
        parts=tuple(made),
        tokens=tuple(tokens),
        log_probabilities=tuple(log_probabilities),
        notes=tuple(note for part in parts for note in part.notes),
        evidence=tuple(evidence),
    )


def _neglect(hypothesis: Hypothesis, options: SearchOptions) -> float:
    """Compute the coverage penalty within a hypothesis's score."""
    penalty = length_penalty(len(hypothesis.tokens) + 1, options.length_penalty)
    return hypothesis.score - hypothesis.log_probability / float(penalty)
