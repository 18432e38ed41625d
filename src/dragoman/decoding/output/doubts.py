"""Find places of a translation that a person should look at: numbers, names, length, repetition."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence

from dragoman.decoding.output.doubt import Doubt, Kind, Side
from dragoman.decoding.output.name_doubts import ADDRESS, WORD, compare_addresses, compare_names
from dragoman.decoding.output.number_doubts import compare_numbers
from dragoman.decoding.output.quality_checks import find_quality_issue

SHORTEST_WORDS = 4
"""Words from which on a sentence's length says something."""
MOST_UNEVEN = 2.4
"""Times as many characters as the other side; in a thousand pairs of held-out lines a few are."""
LONGEST_REPEAT = 4
MOST_COPIED = 0.7
LEAST_LETTERS = 70
"""Letters from which on a sentence may lack one of its clauses."""
SHORTEST = 0.55
"""Of the usual length in its language: a translation that is shorter may lack a clause."""
# How many letters what English says in one takes.
_LENGTHS = {"de": 1.12, "fr": 1.12, "es": 1.06, "it": 1.08, "nl": 1.1, "pt": 1.06, "pl": 1.05}


def find_doubts(
    source: str,
    translation: str,
    source_language: str = "",
    target_language: str = "",
    terms: Sequence[tuple[str, str]] = (),
) -> list[Doubt]:
    """Find doubtful places of a sentence's translation.

    Notes
    -----
    A number is doubtful that has the same digits nowhere on the other side, or is written in a
    wrong way (see `compare_numbers`); so are names (see `compare_names`) and addresses that the
    translation does not have. So is a translation much longer or shorter than its source, one that
    says words twice in a row which the source does not, and one that is mostly the source’s words.
    These are hints: correct translations have some of them. A glossary's terms that both texts have
    are right, numbers and names in them too.
    """
    if not translation.strip():
        return [_whole("length", "source", source, "nothing was translated")] if source else []
    # Digits and capitals of addresses are no numbers or names.
    one, other = (ADDRESS.sub(_blank, each) for each in (source, translation))
    one, other = _blank_terms(one, other, terms)
    languages = source_language, target_language
    return [
        *compare_addresses(source, translation),
        *compare_numbers(one, other, source_language, target_language),
        *compare_names(one, other, source_language, target_language),
        *_compare_lengths(source, translation, *languages),
        *_find_repetitions(source, translation),
        *_find_copy(source, translation),
    ]


def _blank(match: re.Match[str]) -> str:
    return "_" * len(match.group())


def _blank_terms(
    source: str, translation: str, terms: Sequence[tuple[str, str]]
) -> tuple[str, str]:
    """Blank the terms that both texts have."""
    for term in terms:
        patterns = [re.compile(re.escape(each), re.IGNORECASE) for each in term if each]
        texts = source, translation
        if len(patterns) == 2 and all(map(re.Pattern.search, patterns, texts)):
            source, translation = map(re.Pattern.sub, patterns, (_blank, _blank), texts)
    return source, translation


def _whole(kind: Kind, side: Side, text: str, words: str) -> Doubt:
    return Doubt(kind=kind, side=side, begin=0, end=len(text), words=words)


def _compare_lengths(source: str, translation: str, *languages: str) -> Iterator[Doubt]:
    """Compare lengths where both sides are written with spaces."""
    sizes = [len("".join(each.split())) for each in (source, translation)]
    longer, shorter = max(sizes), max(min(sizes), 1)
    has_words = all(_is_spaced(each) for each in (source, translation))
    issue = find_quality_issue(source, translation)
    has_words = has_words and len(source.split()) >= SHORTEST_WORDS
    is_uneven = has_words and longer > MOST_UNEVEN * shorter
    usual = [_LENGTHS.get(each.split("-")[0], 1.0) for each in languages]
    is_cut = sizes[0] >= LEAST_LETTERS and sizes[1] < SHORTEST * sizes[0] * usual[1] / usual[0]
    if is_uneven or (has_words and is_cut) or (issue is not None and issue.kind != "repetition"):
        what = "long" if sizes[1] > sizes[0] else "short"
        said = f"very {what}: {sizes[1]:,} characters from {sizes[0]:,}"
        yield _whole("length", "target", translation, said)


def _is_spaced(text: str) -> bool:
    """Whether a text is in a script that separates words, which makes lengths comparable."""
    letters = [each for each in text if each.isalpha()]
    return bool(letters) and all(
        unicodedata.name(each, "").split(" ")[0] in ("LATIN", "CYRILLIC", "GREEK")
        for each in letters
    )


def _find_repetitions(source: str, translation: str) -> Iterator[Doubt]:
    """Find words that come twice in a row, where none of the source do."""
    words = list(WORD.finditer(translation))
    if any(_repeats([each.group().casefold() for each in WORD.finditer(source)])):
        return
    for place, size in _repeats([each.group().casefold() for each in words]):
        begin, end = words[place + size].start(), words[place + 2 * size - 1].end()
        yield Doubt(
            kind="repetition", side="target", begin=begin, end=end,
            words=f"says “{translation[begin:end]}” twice",
        )  # fmt: skip


def _repeats(words: list[str]) -> Iterator[tuple[int, int]]:
    """List where a phrase of a few words begins that comes again at once, and how long it is."""
    place = 0
    while place < len(words) - 1:
        for size in range(1, LONGEST_REPEAT + 1):
            phrase = words[place : place + size]
            if len(phrase) == size and words[place + size : place + 2 * size] == phrase:
                yield place, size
                place += size - 1
                break
        place += 1


def _find_copy(source: str, translation: str) -> Iterator[Doubt]:
    """Find a translation that is mostly the source's words."""
    sides = [
        Counter(each.group().casefold() for each in WORD.finditer(text))
        for text in (source, translation)
    ]
    total = sum(sides[1].values())
    if total < SHORTEST_WORDS:
        return
    if sum((sides[0] & sides[1]).values()) > MOST_COPIED * total:
        yield _whole("language", "target", translation, "seems to be left untranslated")
