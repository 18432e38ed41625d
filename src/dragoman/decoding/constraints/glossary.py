"""Glossaries and lists of forbidden words: reading them and finding their entries in text."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.decoding.constraints.spelling import WordFinder, fold_case
from dragoman.errors import DataError
from dragoman.text.normalise import normalise

LONGEST_PHRASE = 500
"""Characters of a forbidden phrase at most: its repetitions take time by the square of them."""


class Term(NamedTuple):
    """A source term, its required translation, and the line that says so."""

    source: str
    target: str
    place: str


class ForbiddenPhrase(NamedTuple):
    """A forbidden phrase, and the line that says so."""

    text: str
    place: str


class Glossary:
    """Source terms and their required translations.

    Parameters
    ----------
    terms : Sequence[Term]
        The terms, each source once.

    Notes
    -----
    A source term is found where it stands as whole words, in whatever case; what hyphens join is
    one word, so “mère” is not found in “grand-mère”. Of two that begin at the same place the longer
    counts, and what is found does not overlap.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = tuple(terms)
        self._by_source = {fold_case(normalise(each.source)): each for each in terms}
        self._words = WordFinder([each.source for each in terms], joiners="-‐‑")

    def find(self, text: str) -> list[Term]:
        """Find the terms of a text."""
        return [self._by_source[each] for each in self._words.find(text)]

    def without(self, dropped: Sequence[Term]) -> "Glossary":
        """Return a copy without some terms."""
        gone = set(dropped)
        return Glossary([each for each in self.terms if each not in gone])


def read_glossary(path: Path) -> Glossary:
    """Read a glossary: a source term, a tab and its required translation on each line."""
    terms: dict[str, Term] = {}
    for number, line in _read_lines(path):
        place = f"{path}:{number}"
        columns = [normalise(column) for column in line.split("\t")]
        if len(columns) != 2:
            raise DataError(
                f"{place}: has {len(columns)} columns, not 2; write a source term, a tab and a "
                "target term"
            )
        if not all(columns):
            side = "source" if not columns[0] else "target"
            raise DataError(f"{place}: the {side} term is empty; write one, or leave the line out")
        term = Term(columns[0], columns[1], place)
        other = terms.setdefault(fold_case(term.source), term)
        if other.target != term.target:
            raise DataError(
                f"{place}: “{term.source}” is “{term.target}” here but “{other.target}” in "
                f"{other.place}; keep one of them"
            )
    return Glossary(list(terms.values()))


def read_forbidden(path: Path) -> list[ForbiddenPhrase]:
    """Read forbidden words, one a line.

    Returns
    -------
    list[ForbiddenPhrase]
        The words; a line may have several, which then must not appear in a row.
    """
    phrases = []
    for number, line in _read_lines(path):
        if "\t" in line.strip():
            raise DataError(
                f"{path}:{number}: has a tab, but must be one word or phrase; put each on a line "
                "of its own"
            )
        phrase = normalise(line)
        if len(phrase) > LONGEST_PHRASE:
            raise DataError(
                f"{path}:{number}: has {len(phrase):,} characters, but {LONGEST_PHRASE} are the "
                "most; forbid a part of it"
            )
        phrases.append(ForbiddenPhrase(phrase, f"{path}:{number}"))
    return phrases


class ForbiddenPhrases:
    """All forbidden phrases.

    Parameters
    ----------
    phrases : Sequence[ForbiddenPhrase]
        The words.
    """

    def __init__(self, phrases: Sequence[ForbiddenPhrase]) -> None:
        self._by_text = {fold_case(normalise(each.text)): each for each in phrases}
        self._words = WordFinder([each.text for each in phrases])

    def find(self, text: str) -> ForbiddenPhrase | None:
        """Find the first forbidden phrase of a text."""
        found = self._words.find(text)
        return self._by_text[found[0]] if found else None


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, with their numbers."""
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    for number, line in enumerate(contents.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number}: is not UTF-8; save the file as UTF-8") from None
        if normalise(text):
            yield number, text.rstrip("\r")
