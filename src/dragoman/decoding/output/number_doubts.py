"""Find numbers that a translation lacks, invents, repeats or writes in a wrong way."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from dragoman.decoding.output.doubt import Doubt, Side

_NUMBER = re.compile(r"\d+(?:[.,:/’'\u00a0\u202f -]\d+)*")
_DATE = re.compile(r"(?:(\d{1,2})([./-])(\d{1,2})\2(\d{4}|\d\d))|(?:(\d{4})-(\d\d?)-(\d\d?))")
_AFTERNOON = re.compile(r"\s*p\.?\s?m\b", re.IGNORECASE)
_CLOCK = re.compile(r"(\d{1,2})(?:[:.](\d\d))?")
_SPACES = re.compile(r"[\u00a0\u202f -]")
# A number that “a.30 p.m.” continues: the hour was torn off.
_TORN_CLOCK = re.compile(r"\d+\s*a\.\s?\d+(?:\s*[ap]\.?\s?m\b\.?)?", re.IGNORECASE)
# Languages that write 2,850.5; all others here write 2.850,5 or 2 850,5.
_POINT_LANGUAGES = ("en", "zh", "ja", "ko", "th", "he", "hi")
# Both ways are in use.
_UNSURE_LANGUAGES = ("es", "de-CH", "de-LI", "fr-CH", "it-CH", "en-ZA", "")
_COMMA_NOTATION = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d+,\d{1,2}")
_POINT_NOTATION = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
# 1.214.700,50 or 1,214,700.50 or 1 214 700,50, and what has one separator.
_WELL_FORMED = re.compile(
    r"\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:[’']\d{3})+(?:[.,]\d+)?"
    r"|\d+[.,]\d+|\d+|\d+(?:\.\d+){3,}|\d{1,2}(?:[:.]\d\d){2}"
)

_WORDS = {
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    "en": "zero one two three four five six seven eight nine ten eleven twelve",
}
_TENS = {
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "en": "twenty thirty forty fifty sixty seventy eighty ninety hundred",
}


@dataclass(eq=False)
class _Number:
    """A number where it stands, and how it reads without separators."""

    begin: int
    end: int
    text: str
    digits: str
    date: tuple[str, ...] = ()


def compare_numbers(
    source: str, translation: str, source_language: str = "", target_language: str = ""
) -> Iterator[Doubt]:
    """Compare the digits of numbers, whatever separates them; find those written in a wrong way.

    Notes
    -----
    Dates are one number each, which day and year beside the name of a month are as well. Hours of
    the afternoon may have been told by twelve.
    """
    ours, theirs = _find_numbers(source), _find_numbers(translation)
    odd = list(_find_misspelt(source, translation, source_language, target_language))
    yield from odd
    left, others = list(ours), list(theirs)
    _drop_dates(left, others)
    _drop_dates(others, left)
    _drop_equal(left, others)
    _drop_hours(source, left, translation, others)
    _drop_parts(left, others)
    _drop_parts(others, left)
    left = _drop_words(left, translation, target_language)
    others = _drop_words(others, source, source_language)
    # What is marked already as written in a wrong way is not also missing.
    others = [each for each in others if not any(one.begin < each.end > each.begin < one.end
                                                 for one in odd)]  # fmt: skip
    yield from _tell("source", left, theirs, "the translation")
    yield from _tell("target", others, ours, "the source")


def _find_numbers(text: str) -> list[_Number]:
    """Find numbers; a date is one."""
    found = []
    for match in _NUMBER.finditer(text):
        pieces = [match] if _DATE.fullmatch(match.group()) else _cut_ranges(text, match)
        for piece in pieces:
            date = _DATE.fullmatch(piece.group())
            parts = tuple(each for each in date.groups() if each and each.isdigit()) if date else ()
            parts = tuple(_plain(each).lstrip("0") for each in parts)
            found.append(
                _Number(piece.start(), piece.end(), piece.group(), _plain(piece.group()), parts)
            )
    return found


def _cut_ranges(text: str, match: re.Match[str]) -> list[re.Match[str]]:
    """Cut what hyphens join, which are two numbers."""
    inner = re.compile(_NUMBER.pattern.replace(" -]", " ]"))
    return list(inner.finditer(text, match.start(), match.end()))


def _plain(text: str) -> str:
    return "".join(str(unicodedata.digit(each)) for each in text if each.isdigit())


def _drop_dates(dates: list[_Number], others: list[_Number]) -> None:
    """Drop dates that the other side has as well, and there the numbers that are part of one."""
    for date in [each for each in dates if each.date]:
        same = [each for each in others if _is_same_date(date, each)]
        if same:
            others.remove(same[0])
            dates.remove(date)
            continue
        used = []
        for part in date.date:
            used += [each for each in others if each not in used and _is_part(each, part)][:1]
        for each in used:
            others.remove(each)
        if len(used) >= 2:  # Day and year; the month may be a word.
            dates.remove(date)


def _is_same_date(one: _Number, other: _Number) -> bool:
    return bool(other.date) and (
        sorted(each[-2:] for each in one.date) == sorted(each[-2:] for each in other.date)
    )


def _is_part(number: _Number, part: str) -> bool:
    return not number.date and number.digits.lstrip("0") == part


def _drop_equal(ours: list[_Number], theirs: list[_Number]) -> None:
    """Drop from both sides what has the same digits; of several the last are left."""
    for number in list(ours):
        for other in theirs:
            if number.digits == other.digits:
                ours.remove(number)
                theirs.remove(other)
                break


def _drop_hours(source: str, ours: list[_Number], translation: str, theirs: list[_Number]) -> None:
    """Drop from both sides times of day, of which one is told by twelve hours."""
    sides = (source, ours), (translation, theirs)
    for (text, numbers), (_, others) in (sides, sides[::-1]):
        for number in list(numbers):
            clock = _CLOCK.fullmatch(number.text)
            if clock is None or not _AFTERNOON.match(text, number.end):
                continue
            hour = int(clock.group(1)) + 12
            minute = clock.group(2) or ""
            wanted = {f"{hour}{minute}", f"{hour}{minute or '00'}"}
            same = [each for each in others if each.digits in wanted]
            if same:
                numbers.remove(number)
                others.remove(same[0])


def _drop_parts(ours: list[_Number], theirs: list[_Number]) -> None:
    """Drop numbers with spaces (“2020 300”) that are several on the other side."""
    for number in [each for each in ours if _SPACES.search(each.text)]:
        parts = [_plain(each) for each in _SPACES.split(number.text)]
        if not Counter(parts) - Counter(each.digits for each in theirs):
            ours.remove(number)
            for part in parts:
                theirs.remove(next(each for each in theirs if each.digits == part))


def _drop_words(numbers: list[_Number], text: str, language: str) -> list[_Number]:
    """Drop numbers that a text writes as words."""
    name = language.split("-")[0]
    told = text.casefold()
    words = dict(enumerate(_WORDS.get(name, "").split()))
    words |= {10 * place: word for place, word in enumerate(_TENS.get(name, "").split(), start=2)}
    return [
        each for each in numbers
        if not (word := words.get(int(each.digits))) or not re.search(rf"\b{word}", told)
    ]  # fmt: skip


def _tell(side: Side, left: list[_Number], others: list[_Number], where: str) -> Iterator[Doubt]:
    """Tell of the numbers of a side that the other side has not, or less often."""
    elsewhere = {each.digits for each in others} | {part for each in others for part in each.date}
    for number in left:
        what = "date" if number.date else "number"
        said = f"is not in {where}"
        if number.digits in elsewhere:
            said = f"stands once more than in {where}"
        yield _doubt(side, number.begin, number.end, f"the {what} {number.text} {said}")


def _doubt(side: Side, begin: int, end: int, words: str) -> Doubt:
    return Doubt(kind="number", side=side, begin=begin, end=end, words=words)


def _find_misspelt(
    source: str, translation: str, source_language: str, target_language: str
) -> Iterator[Doubt]:
    """Find numbers of a translation that are torn, malformed or in the source's notation."""
    torn = [each for each in _TORN_CLOCK.finditer(translation) if each.group() not in source]
    for match in torn:
        words = f"the time {match.group()} is not well formed"
        yield _doubt("target", match.start(), match.end(), words)
    copied = {each.text for each in _find_numbers(source)}
    foreign = _find_foreign(source_language, target_language)
    for number in _find_numbers(translation):
        if any(each.start() <= number.begin < each.end() for each in torn):
            continue
        is_copied = number.text in copied
        if is_copied and foreign is not None and foreign.fullmatch(number.text):
            words = f"the number {number.text} is written as in the source’s language"
        elif not is_copied and not _is_well_formed(number):
            words = f"the number {number.text} is not well formed"
        else:
            continue
        yield _doubt("target", number.begin, number.end, words)


def _is_well_formed(number: _Number) -> bool:
    if number.date or any(each in number.text for each in "/:"):
        return True
    return all(_WELL_FORMED.fullmatch(each) for each in _SPACES.split(number.text))


def _find_foreign(source_language: str, target_language: str) -> re.Pattern[str] | None:
    """Find what a number looks like in the source's notation, if the target's is another."""
    has_points = [
        each.split("-")[0] in _POINT_LANGUAGES for each in (source_language, target_language)
    ]
    if has_points[0] == has_points[1] or not source_language:
        return None
    if target_language in _UNSURE_LANGUAGES or source_language in _UNSURE_LANGUAGES[1:]:
        return None
    return _POINT_NOTATION if has_points[0] else _COMMA_NOTATION
