"""Numbers up to 9,999 in words, each word marked with the digits it expresses."""

import tomllib
from importlib.resources import files
from typing import NamedTuple


class NumeralWord(NamedTuple):
    """A word of a numeral, and the parts it expresses: letters of “T t H h r”.

    “T” is how many thousands, “t” the word for thousand, “H” and “h” the same for hundreds, “r”
    what is left.
    """

    text: str
    parts: str


COUNTED_WORDS: dict[str, dict[str, list[str]]] = tomllib.loads(
    (files(__package__) / "counted_words.toml").read_text(encoding="utf-8")
)
_FRENCH, _ENGLISH, _SPANISH = (
    COUNTED_WORDS[language]["numerals"] for language in ("french", "english", "spanish")
)
_FRENCH_TENS, _ENGLISH_TENS, _SPANISH_TENS = (
    COUNTED_WORDS[language]["tens"] for language in ("french", "english", "spanish")
)
_SPANISH_HUNDREDS = COUNTED_WORDS["spanish"]["hundreds"]


def _realise_french_below_hundred(number: int, *, feminine: bool, final: bool) -> str:
    if number < 20:
        return "une" if number == 1 and feminine else _FRENCH[number]
    if number >= 80:
        rest = number - 80
        if rest == 0:
            return "quatre-vingts" if final else "quatre-vingt"
        return "quatre-vingt-" + _realise_french_below_hundred(rest, feminine=feminine, final=final)
    tens = _FRENCH_TENS[number // 10]
    rest = number - (60 if number >= 60 else number // 10 * 10)
    if rest == 0:
        return tens
    joint = " et " if rest in (1, 11) else "-"
    return tens + joint + _realise_french_below_hundred(rest, feminine=feminine, final=final)


def realise_french(number: int, *, feminine: bool = False) -> list[NumeralWord]:
    """Spell a number in French, in the traditional spelling (“vingt et un”)."""
    thousands, hundreds, rest = number // 1000, number // 100 % 10, number % 100
    words = []
    if thousands > 1:
        words.append(NumeralWord(_FRENCH[thousands], "T"))
    if thousands:
        words.append(NumeralWord("mille", "t" if thousands > 1 else "Tt"))
    if hundreds > 1:
        words.append(NumeralWord(_FRENCH[hundreds], "H"))
        words.append(NumeralWord("cent" if rest else "cents", "h"))
    elif hundreds:
        words.append(NumeralWord("cent", "Hh"))
    if rest or not words:
        said = _realise_french_below_hundred(rest, feminine=feminine, final=True)
        words.extend(NumeralWord(part, "r") for part in said.split())
    return words


def realise_english(number: int) -> list[NumeralWord]:
    """Spell a number in English, with “and” after the hundreds."""
    thousands, hundreds, rest = number // 1000, number // 100 % 10, number % 100
    words = []
    if thousands:
        words += [NumeralWord(_ENGLISH[thousands], "T"), NumeralWord("thousand", "t")]
    if hundreds:
        words += [NumeralWord(_ENGLISH[hundreds], "H"), NumeralWord("hundred", "h")]
    if rest or not words:
        if words:
            words.append(NumeralWord("and", "r"))
        if rest < 20:
            said = _ENGLISH[rest]
        else:
            said = _ENGLISH_TENS[rest // 10] + (f"-{_ENGLISH[rest % 10]}" if rest % 10 else "")
        words.append(NumeralWord(said, "r"))
    return words


def _realise_spanish_below_hundred(number: int, *, feminine: bool) -> str:
    if number < 30:
        said = _SPANISH[number]
    else:
        said = _SPANISH_TENS[number // 10]
        if number % 10:
            said += f" y {_SPANISH[number % 10]}"
    if not said.endswith("uno"):
        return said
    if feminine:
        return said[:-1] + "a"
    # before a masculine noun: veintiún, treinta y un
    return "veintiún" if said == "veintiuno" else said[:-1]


def realise_spanish(number: int, *, feminine: bool = False) -> list[NumeralWord]:
    """Spell a number in Spanish as before a noun (“treinta y un”, “doscientas”)."""
    thousands, hundreds, rest = number // 1000, number // 100 % 10, number % 100
    words = []
    if thousands > 1:
        words.append(NumeralWord(_SPANISH[thousands], "T"))
    if thousands:
        words.append(NumeralWord("mil", "t" if thousands > 1 else "Tt"))
    if hundreds:
        said = _SPANISH_HUNDREDS[hundreds]
        if hundreds == 1:
            said = "ciento" if rest else "cien"
        elif feminine:
            said = said[:-2] + "as"
        words.append(NumeralWord(said, "Hh"))
    if rest or not words:
        said = _realise_spanish_below_hundred(rest, feminine=feminine)
        words.extend(NumeralWord(part, "r") for part in said.split())
    return words
