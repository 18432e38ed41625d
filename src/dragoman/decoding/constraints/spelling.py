"""Spell subwords as characters, and find where words begin and end."""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dragoman.text.normalise import normalise
from dragoman.text.vocabulary import TextVocabulary

_SPACE_MARK = "\u2581"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_JOINERS = "\u200c\u200d"
_SENTENCE_ENDS = ".!?…。！？¿¡:"


class Unit(NamedTuple):
    """A character, or a byte of one, and whether it is a word character.

    Of a byte outside ASCII nobody can say by itself: None.
    """

    spelt: bytes
    is_word: bool | None


class TokenFacts(NamedTuple):
    """How a subword begins and ends at word boundaries."""

    continues_word: bool
    has_word: bool
    ends_with_word: bool
    ends_sentence: bool


@functools.cache
def is_word_character(character: str) -> bool:
    """Say whether a character belongs to words."""
    is_mark = unicodedata.category(character).startswith("M") or character in _JOINERS
    return character.isalnum() or character == "_" or is_mark


def spell_pieces(vocabulary: TextVocabulary) -> list[tuple[Unit, ...]]:
    """Spell every entry of a vocabulary."""
    pieces = vocabulary.pieces(range(len(vocabulary)))
    special = {vocabulary.eos_id, vocabulary.unk_id, vocabulary.pad_id}
    # An entry of characters may look like a byte: only as many as there can be bytes are.
    has_bytes = all(f"<0x{byte:02X}>" in pieces for byte in range(256))
    return [
        () if number in special else tuple(_spell(piece, has_bytes))
        for number, piece in enumerate(pieces)
    ]


def _spell(piece: str, has_bytes: bool) -> Iterator[Unit]:
    """Spell one entry."""
    byte = _BYTE.fullmatch(piece) if has_bytes else None
    if byte:
        value = int(byte.group(1), 16)
        yield Unit(bytes([value]), is_word_character(chr(value)) if value < 128 else None)
        return
    for character in piece.replace(_SPACE_MARK, " "):
        yield Unit(character.encode("utf-8", "replace"), is_word_character(character))


def describe_token(units: tuple[Unit, ...]) -> TokenFacts:
    """Describe how a subword begins and ends at word boundaries.

    Returns
    -------
    TokenFacts
        A byte outside ASCII counts as a part of a word; so does what stands for nothing.
    """
    if not units:
        return TokenFacts(True, True, True, False)
    belongs = [unit.is_word is not False for unit in units]
    ends_sentence = units[-1].spelt.decode(errors="replace") in _SENTENCE_ENDS
    return TokenFacts(belongs[0], any(belongs), belongs[-1], ends_sentence)


class WordFinder:
    """Finds phrases as whole words, ignoring case.

    Parameters
    ----------
    phrases : Iterable[str]
        Each one word or several.
    joiners : str
        Marks that join words into one.

    Notes
    -----
    At each place of a text the lengths of the phrases that begin with its character are tried, so
    the cost hardly grows with the number of phrases.
    """

    def __init__(self, phrases: Iterable[str], joiners: str = "") -> None:
        self._joiners = joiners
        self._phrases = {fold_case(normalise(each)) for each in phrases}
        lengths: dict[str, set[int]] = {}
        for each in self._phrases:
            lengths.setdefault(each[0], set()).add(len(each))
        self._lengths = {first: sorted(each, reverse=True) for first, each in lengths.items()}

    def find(self, text: str) -> list[str]:
        """Find the phrases of a text.

        Returns
        -------
        list[str]
            In order, as `fold_case` writes them. Of two that begin at the same place the longer is
            found, and what is found does not overlap.
        """
        text = fold_case(normalise(text))
        found = []
        place = 0
        while place < len(text):
            phrase = self._phrase_at(text, place)
            if phrase:
                found.append(phrase)
            place += len(phrase) or 1
        return found

    def _phrase_at(self, text: str, place: int) -> str:
        """Find the longest phrase that begins at a position; empty: none does."""
        for length in self._lengths.get(text[place], ()):
            end = place + length
            if text[place:end] in self._phrases:
                is_cut = self._joins(text, place - 1, place) or self._joins(text, end, end - 1)
                if not is_cut:
                    return text[place:end]
        return ""

    def _joins(self, text: str, outside: int, inside: int) -> bool:
        """Say whether the characters on both sides of a boundary belong to one word."""
        if not 0 <= outside < len(text) or not is_word_character(text[inside]):
            return False
        return is_word_character(text[outside]) or text[outside] in self._joiners


def fold_case(text: str) -> str:
    """Fold the case of a text, keeping its length.

    Returns
    -------
    str
        As long as the text, which `str.casefold` is not: “ß” remains, and “İ” becomes “i”.
    """
    folded = text.casefold()
    return folded if len(folded) == len(text) else "".join(map(_fold_character, text))


@functools.cache
def _fold_character(character: str) -> str:
    folded = character.casefold()
    return folded if len(folded) == 1 else character.lower()[0]


def word_pattern(phrases: list[str]) -> re.Pattern[str]:
    """Compile a pattern that matches phrases as whole words, ignoring case.

    Parameters
    ----------
    phrases : list[str]
        Each one word or several; of two that begin at the same place the longer is found.
    """
    longest_first = sorted({normalise(each) for each in phrases}, key=len, reverse=True)
    branches = [
        (r"(?<!\w)" if is_word_character(each[0]) else "")
        + re.escape(each)
        + (r"(?!\w)" if is_word_character(each[-1]) else "")
        for each in longest_first
    ]
    return re.compile(f"({'|'.join(branches) or '(?!)'})", re.IGNORECASE)
