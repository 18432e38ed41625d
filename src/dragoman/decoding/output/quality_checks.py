"""Detect translations that cannot be right, and search for them again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Literal, Protocol, runtime_checkable

from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.options import LARGEST_ALPHA, SearchOptions
from dragoman.decoding.segment import Segment
from dragoman.decoding.translation import Part
from dragoman.text.repetition import find_repetition

LONGEST_PHRASE = 12
MOST_REPEATS = 4
LONGEST_SYLLABLE = 12
MOST_SYLLABLES = 8
SHORTEST_BABBLE = 24
LENGTH_RATIO = 5
LENGTH_SLACK = 40
WIDEST_BEAM = 8
_PROBE = 11
"""Characters of a run of syllables that begin wherever the run does, and come again at most a
syllable later: 2 · 11 − 1 + syllable are no more than the shortest run has."""
_BABBLE = re.compile(rf"(.{{1,{LONGEST_SYLLABLE}}}?)\1{{{MOST_SYLLABLES - 1},}}")

Kind = Literal["repetition", "short", "long"]


@runtime_checkable
class SearchSegments(Protocol):
    """Translates segments in order, on request without threefold repetition of phrases.

    Each part has all hypotheses of the beam as candidates, at least as many as were asked for.
    """

    def __call__(
        self, segments: Sequence[Segment], options: SearchOptions, *, is_unrepeated: bool
    ) -> list[Part]:
        """Translate."""
        ...


@dataclass(frozen=True, kw_only=True)
class QualityIssue:
    """Why a translation cannot be right.

    Parameters
    ----------
    kind : Literal["repetition", "short", "long"]
        What is wrong.
    words : str
        The same for people.
    """

    kind: Kind
    words: str


def find_quality_issue(source: str, translation: str) -> QualityIssue | None:
    """Detect repetition, implausible length and an empty translation of words.

    Notes
    -----
    A fault is a phrase of up to twelve words that comes four times or more in a row, or up to
    twelve characters that come eight times or more and fill 24 characters, unless the source
    repeats something at least half as often (“ha ha ha ha”). So is a translation with
    more than five times the characters of its source and forty, or the other way round: no pair of
    languages is that uneven, and a short text may well be. Nothing at all is a fault where the
    source has a letter or a digit. The cost is linear in the length.
    """
    words = _repeated_words(translation.split(), source.split())
    if words is not None:
        return words
    babble = _repeated_characters(translation, source)
    if babble is not None:
        return babble
    if not translation.strip() and any(map(str.isalnum, source)):
        return QualityIssue(kind="short", words="empty")
    lengths = len("".join(source.split())), len("".join(translation.split()))
    said = f"{lengths[1]:,} characters from {lengths[0]:,}"
    if lengths[1] > LENGTH_RATIO * lengths[0] + LENGTH_SLACK:
        return QualityIssue(kind="long", words=f"far too long ({said})")
    if lengths[0] > LENGTH_RATIO * lengths[1] + LENGTH_SLACK:
        return QualityIssue(kind="short", words=f"far too short ({said})")
    return None


def search_again(
    parts: Sequence[Part], search: SearchSegments, options: SearchOptions
) -> list[Part]:
    """Search again for faulty translations, and keep results without fault.

    Returns
    -------
    list[Part]
        In place of each faulty translation the best new one that is free of faults, with those
        behind it, if there are as many as before and it drops no constraint that the old one meets;
        otherwise the old one. Each has a note that says so.

    Notes
    -----
    What repeats itself is searched for with a rule that no phrase may come three times in a row;
    what is too short with the length penalty's exponent raised by 1, what is too long with none,
    and both with a beam of eight if it was narrower. The rule of choice asks nothing of scores,
    which different searches give differently.
    """
    chosen = list(parts)
    found: dict[Kind, list[tuple[int, QualityIssue]]] = {}
    for index, part in enumerate(parts):
        text, hypothesis = part.candidates[0]
        issue = find_quality_issue(part.segment.text, text)
        if issue is not None and hypothesis.log_probability != -inf:  # there it is no translation
            found.setdefault(issue.kind, []).append((index, issue))
    for kind, flagged in found.items():
        other = _other_options(options, kind)
        segments = [parts[index].segment for index, _ in flagged]
        anew = search(segments, other, is_unrepeated=kind == "repetition")
        for (index, issue), new in zip(flagged, anew, strict=True):
            old = parts[index]
            good = _from_first_faultless(new)
            is_better = len(good) >= len(old.candidates) and set(new.notes) <= set(old.notes)
            outcome = "another search did better" if is_better else "another search did no better"
            remark = f"translation {issue.words}; {outcome}"
            kept = good[: len(old.candidates)]
            best = new._replace(anew=other, candidates=kept) if is_better else old
            notes = (remark, *best.notes)
            chosen[index] = best._replace(notes=notes, is_suspicious=True)
    return chosen


def _from_first_faultless(part: Part) -> list[tuple[str, Hypothesis]]:
    """Return a segment's candidates from the best one without fault on."""
    for place, (text, _) in enumerate(part.candidates):
        if find_quality_issue(part.segment.text, text) is None:
            return part.candidates[place:]
    return []


def _other_options(options: SearchOptions, kind: Kind) -> SearchOptions:
    """Choose the options of the second search."""
    if kind == "repetition":
        return options
    alpha = min(options.length_penalty + 1, LARGEST_ALPHA) if kind == "short" else 0.0
    wide = max(options.beam_size, WIDEST_BEAM)
    return replace(options, beam_size=wide, length_penalty=alpha)


def _repeated_words(words: list[str], source: list[str]) -> QualityIssue | None:
    """Detect a phrase that is repeated many times in a row."""
    if len(words) - len(set(words)) < MOST_REPEATS - 1:
        return None
    found = find_repetition(words, LONGEST_PHRASE)
    if found.num_times < MOST_REPEATS:
        return None
    if found.num_times <= 2 * find_repetition(source, LONGEST_PHRASE).num_times:
        return None
    phrase = " ".join(words[found.start : found.start + found.period])
    return QualityIssue(
        kind="repetition", words=f"says “{phrase}” {found.num_times:,} times in a row"
    )


def _repeated_characters(text: str, source: str) -> QualityIssue | None:
    """Detect repeated syllables; a few characters, looked for again, rule most texts out fast."""
    if not any(
        text.find(text[start : start + _PROBE], start + 1, start + _PROBE + LONGEST_SYLLABLE) >= 0
        for start in range(0, len(text) - _PROBE, _PROBE)
    ):
        return None
    if not any(len(each.group()) >= SHORTEST_BABBLE for each in _BABBLE.finditer(text)):
        return None
    found = find_repetition(text, LONGEST_SYLLABLE)
    if found.num_times <= 2 * find_repetition(source, LONGEST_SYLLABLE).num_times:
        return None
    syllable = text[found.start : found.start + found.period]
    return QualityIssue(
        kind="repetition", words=f"says “{syllable}” {found.num_times:,} times in a row"
    )
