"""Expressions of time: months, dates, days, years, hours and fixed expressions."""

from dataclasses import dataclass

from dragoman.data.builtin.lexicon.entries import Expression
from dragoman.data.builtin.lexicon.numerals import (
    COUNTED_WORDS,
    realise_english,
    realise_french,
    realise_spanish,
)
from dragoman.data.builtin.lexicon.word_meanings import Word, make_marked_words, make_words

_FRENCH_MONTHS, _ENGLISH_MONTHS, _SPANISH_MONTHS = (
    COUNTED_WORDS[language]["months"] for language in ("french", "english", "spanish")
)
FRENCH_WEEKDAYS, ENGLISH_WEEKDAYS, SPANISH_WEEKDAYS = (
    COUNTED_WORDS[language]["weekdays"] for language in ("french", "english", "spanish")
)


@dataclass(frozen=True, slots=True)
class Month:
    """A month (0 to 11), of a year when that is not 0."""

    month: int
    year: int = 0


@dataclass(frozen=True, slots=True)
class Date:
    """A day of a month; a year of 0 and a weekday of -1 are left unsaid."""

    day: int
    month: int
    year: int = 0
    weekday: int = -1


@dataclass(frozen=True, slots=True)
class Weekday:
    """A day of the week (0 is Monday), one of them or every one."""

    weekday: int
    habitual: bool


@dataclass(frozen=True, slots=True)
class Year:
    """A year."""

    year: int


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour from 1 to 12, with minutes past it: 0, 5, 10, 15, 20, 25 or 30."""

    hour: int
    minute: int = 0


Moment = Month | Date | Weekday | Year | Hour | Expression


def realise_french_hour(moment: Hour, path: str) -> list[Word]:
    """Realise an hour in French without preposition."""
    words = make_words(realise_french(moment.hour, feminine=True)[0].text, f"{path}/h")
    words += make_words("heure" if moment.hour == 1 else "heures", f"{path}/o")
    if moment.minute:
        said = {15: "et quart", 30: "et demie"}.get(moment.minute)
        words += make_words(said or realise_french(moment.minute)[0].text, f"{path}/m")
    return words


def realise_english_hour(moment: Hour, path: str) -> list[Word]:
    """Realise an hour in English without preposition."""
    hour = make_words(realise_english(moment.hour)[0].text, f"{path}/h")
    if not moment.minute:
        return hour + make_words("o’clock", f"{path}/o")
    said = {15: "a quarter", 30: "half"}.get(moment.minute)
    minutes = make_words(said or realise_english(moment.minute)[0].text, f"{path}/m")
    return minutes + make_words("past", f"{path}/m", f"{path}/o") + hour


def realise_spanish_hour(moment: Hour, path: str) -> list[Word]:
    """Realise an hour in Spanish without preposition."""
    hour = realise_spanish(moment.hour, feminine=True)[0].text
    words = make_words("la" if moment.hour == 1 else "las", f"{path}/o")
    words += make_words(hour, f"{path}/h")
    if moment.minute:
        said = {15: "y cuarto", 30: "y media"}.get(moment.minute)
        words += make_words(said or f"y {realise_spanish(moment.minute)[0].text}", f"{path}/m")
    return words


def realise_french_moment(moment: Moment, path: str) -> list[Word]:
    """Realise an expression of time in French."""
    match moment:
        case Expression():
            return make_marked_words(moment.french, path)
        case Month(month, year):
            words = make_words("en", f"{path}/p") + make_words(_FRENCH_MONTHS[month], f"{path}/m")
            return words + (make_words(str(year), f"{path}/y") if year else [])
        case Year(year):
            return make_words("en", f"{path}/p") + make_words(str(year), f"{path}/y")
        case Weekday(weekday, habitual):
            words = make_words("le", f"{path}/p") if habitual else []
            nodes = (f"{path}/w",) if habitual else (f"{path}/p", f"{path}/w")
            return words + make_words(FRENCH_WEEKDAYS[weekday], *nodes)
        case Hour():
            return make_words("à", f"{path}/p") + realise_french_hour(moment, path)
        case Date(day, month, year, weekday):
            words = make_words("le", f"{path}/p")
            if weekday >= 0:
                words += make_words(FRENCH_WEEKDAYS[weekday], f"{path}/w")
            words += make_words("1er" if day == 1 else str(day), f"{path}/d")
            words += make_words(_FRENCH_MONTHS[month], f"{path}/m")
            return words + (make_words(str(year), f"{path}/y") if year else [])


def realise_english_moment(moment: Moment, path: str) -> list[Word]:
    """Realise an expression of time in English."""
    match moment:
        case Expression():
            return make_marked_words(moment.english, path)
        case Month(month, year):
            words = make_words("in", f"{path}/p") + make_words(_ENGLISH_MONTHS[month], f"{path}/m")
            return words + (make_words(str(year), f"{path}/y") if year else [])
        case Year(year):
            return make_words("in", f"{path}/p") + make_words(str(year), f"{path}/y")
        case Weekday(weekday, habitual):
            name = ENGLISH_WEEKDAYS[weekday] + ("s" if habitual else "")
            return make_words("on", f"{path}/p") + make_words(name, f"{path}/w")
        case Hour():
            return make_words("at", f"{path}/p") + realise_english_hour(moment, path)
        case Date(day, month, year, weekday):
            words = make_words("on", f"{path}/p")
            if weekday >= 0:
                words += make_words(ENGLISH_WEEKDAYS[weekday], f"{path}/w")
            words += make_words(str(day), f"{path}/d")
            words += make_words(_ENGLISH_MONTHS[month], f"{path}/m")
            return words + (make_words(str(year), f"{path}/y") if year else [])


def realise_spanish_moment(moment: Moment, path: str) -> list[Word]:
    """Realise an expression of time in Spanish."""
    match moment:
        case Expression():
            return make_marked_words(moment.spanish, path)
        case Month(month, year):
            words = make_words("en", f"{path}/p") + make_words(_SPANISH_MONTHS[month], f"{path}/m")
            return words + (make_words(f"de {year}", f"{path}/y") if year else [])
        case Year(year):
            return make_words("en", f"{path}/p") + make_words(str(year), f"{path}/y")
        case Weekday(weekday, habitual):
            name = SPANISH_WEEKDAYS[weekday]
            if habitual:
                name = name if name.endswith("s") else name + "s"
            return make_words("los" if habitual else "el", f"{path}/p") + make_words(
                name, f"{path}/w"
            )
        case Hour():
            return make_words("a", f"{path}/p") + realise_spanish_hour(moment, path)
        case Date(day, month, year, weekday):
            words = make_words("el", f"{path}/p")
            if weekday >= 0:
                words += make_words(SPANISH_WEEKDAYS[weekday], f"{path}/w")
            words += make_words(str(day), f"{path}/d")
            words += make_words(f"de {_SPANISH_MONTHS[month]}", f"{path}/m")
            return words + (make_words(f"de {year}", f"{path}/y") if year else [])
