"""Find places of a translation that a person should look at: numbers, names, length, repetition."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from dragoman.decoding.output.quality_checks import find_quality_issue

SHORTEST_WORDS = 4
"""Words from which on a sentence's length says something."""
MOST_UNEVEN = 2.4
"""Times as many characters as the other side; in a thousand pairs of held-out lines a few are."""
LONGEST_REPEAT = 4
MOST_COPIED = 0.7
_SAME_BEGINNING = 3
_LATIN = "abcdefghijklmnopqrstuvwxyz"

Kind = Literal["number", "name", "length", "repetition", "language"]
Side = Literal["source", "target"]

_NUMBER = re.compile(r"\d+(?:[.,:/’'\u00a0\u202f ]\d+)*")
_WORD = re.compile(r"[^\W\d_]+(?:[-’'][^\W\d_]+)*")
_SENTENCE_END = re.compile(r"[.!?:…„“”\"«»(\[]\s*$")
# English writes these with a capital, most other languages do not.
_NO_NAMES = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
    "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december", "english", "french", "german", "spanish", "italian", "dutch",
    "russian", "chinese", "japanese", "polish", "portuguese", "european", "american",
    "british", "mr", "mrs", "miss", "sir", "god", "internet",
})  # fmt: skip
# Languages that write every noun with a capital: there a capital says nothing of names.
_CAPITAL_NOUNS = ("de", "lb")


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """A place that a person should look at.

    Parameters
    ----------
    kind : Literal["number", "name", "length", "repetition", "language"]
        What may be wrong.
    side : Literal["source", "target"]
        Which text the place is in.
    begin : int
        Where the place begins, in characters.
    end : int
        Where it ends.
    words : str
        What may be wrong, for people.
    """

    kind: Kind
    side: Side
    begin: int
    end: int
    words: str


def find_doubts(
    source: str, translation: str, source_language: str = "", target_language: str = ""
) -> list[Doubt]:
    """Find doubtful places of a sentence's translation.

    Notes
    -----
    A number is doubtful that has the same digits nowhere on the other side. So is a name (a word
    with a capital inside a sentence, where the language does not write all nouns so) if no word of
    the translation begins likewise, unless the translation has as many names of its own; only in
    Latin letters. So is a translation much longer or shorter than its source, one that says words
    twice in a row which the source does not, and one that is mostly the source’s words. These are
    hints: correct translations have some of them.
    """
    if not translation.strip():
        return [_whole("length", "source", source, "nothing was translated")] if source else []
    return [
        *_compare_numbers(source, translation),
        *_compare_names(source, translation, source_language, target_language),
        *_compare_lengths(source, translation),
        *_find_repetitions(source, translation),
        *_find_copy(source, translation),
    ]


def _whole(kind: Kind, side: Side, text: str, words: str) -> Doubt:
    return Doubt(kind=kind, side=side, begin=0, end=len(text), words=words)


def _compare_numbers(source: str, translation: str) -> Iterator[Doubt]:
    """Compare the digits of numbers, whatever separates them."""
    ours, theirs = list(_NUMBER.finditer(source)), list(_NUMBER.finditer(translation))
    # “10 000” may be two numbers on one side: all digits as one string are compared too.
    if "".join(map(_digits, ours)) != "".join(map(_digits, theirs)):
        yield from _missing("source", ours, theirs, "is not in the translation")
        yield from _missing("target", theirs, ours, "is not in the source")


def _missing(
    side: Side, numbers: list[re.Match[str]], others: list[re.Match[str]], said: str
) -> Iterator[Doubt]:
    """Find the numbers of a side that the other side has not, or less often."""
    left = Counter(map(_digits, numbers)) - Counter(map(_digits, others))
    for match in reversed(numbers):
        if left[_digits(match)] > 0:
            left[_digits(match)] -= 1
            words = f"the number {match.group()} {said}"
            yield Doubt(kind="number", side=side, begin=match.start(), end=match.end(), words=words)


def _digits(match: re.Match[str]) -> str:
    return "".join(str(unicodedata.digit(each)) for each in match.group() if each.isdigit())


def _compare_names(source: str, translation: str, *languages: str) -> Iterator[Doubt]:
    """Find names of the source that the translation does not seem to have."""
    has_nouns = [each.split("-")[0] in _CAPITAL_NOUNS for each in languages]
    if has_nouns[0] or not any(each.isalpha() and each in _LATIN for each in _fold(translation)):
        return
    names = [each for each in _find_names(source) if each.group().lower() not in _NO_NAMES]
    beginnings = {_fold(each.group())[:_SAME_BEGINNING] for each in _WORD.finditer(translation)}
    missing = [each for each in names if _fold(each.group())[:_SAME_BEGINNING] not in beginnings]
    if not missing:
        return
    # “Germany” may be “Allemagne”: a name of the translation that the source has not.
    origins = {_fold(each.group())[:_SAME_BEGINNING] for each in _WORD.finditer(source)}
    found = [] if has_nouns[1] else _find_names(translation)
    others = [each for each in found if _fold(each.group())[:_SAME_BEGINNING] not in origins]
    for match in missing[len(others) :]:
        yield Doubt(
            kind="name", side="source", begin=match.start(), end=match.end(),
            words=f"the name {match.group()} does not seem to be in the translation",
        )  # fmt: skip


def _find_names(text: str) -> Iterator[re.Match[str]]:
    """Find words with a capital that no beginning of a sentence explains."""
    letters = [each for each in text if each.isalpha()]
    if letters and sum(map(str.isupper, letters)) > len(letters) / 2:
        return  # all in capitals
    for match in _WORD.finditer(text):
        before = text[: match.start()]
        is_first = not before.strip() or _SENTENCE_END.search(before) is not None
        if match.group()[0].isupper() and len(match.group()) > 1 and not is_first:
            yield match


def _fold(word: str) -> str:
    """Fold case and accents."""
    plain = unicodedata.normalize("NFD", word.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


def _compare_lengths(source: str, translation: str) -> Iterator[Doubt]:
    """Compare lengths where both sides are written with spaces."""
    sizes = [len("".join(each.split())) for each in (source, translation)]
    longer, shorter = max(sizes), max(min(sizes), 1)
    has_words = all(_is_spaced(each) for each in (source, translation))
    issue = find_quality_issue(source, translation)
    has_words = has_words and len(source.split()) >= SHORTEST_WORDS
    is_uneven = has_words and longer > MOST_UNEVEN * shorter
    if is_uneven or (issue is not None and issue.kind != "repetition"):
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
    words = list(_WORD.finditer(translation))
    if any(_repeats([each.group().casefold() for each in _WORD.finditer(source)])):
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
        Counter(each.group().casefold() for each in _WORD.finditer(text))
        for text in (source, translation)
    ]
    total = sum(sides[1].values())
    if total < SHORTEST_WORDS:
        return
    if sum((sides[0] & sides[1]).values()) > MOST_COPIED * total:
        yield _whole("language", "target", translation, "seems to be left untranslated")
