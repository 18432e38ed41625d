"""What a user demands of every translation: terms that must appear and words that must not."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.decoding.spelling import find_words, word_pattern
from dragoman.errors import DataError
from dragoman.text.normalise import normalise


class Term(NamedTuple):
    """How a source term must be translated, and where that was said."""

    source: str
    target: str
    place: str


class ForbiddenPhrase(NamedTuple):
    """Words that must not appear, and where that was said."""

    text: str
    place: str


class Glossary:
    """Terms and their translations.

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
        self._by_source = {normalise(each.source).casefold(): each for each in terms}
        self._pattern = word_pattern([each.source for each in terms], joiners="-‐‑")

    def find(self, text: str) -> list[Term]:
        """Find the terms of a text.

        Parameters
        ----------
        text : str
            A source text.

        Returns
        -------
        list[Term]
            In order; a term that occurs twice is there twice.
        """
        found = self._pattern.finditer(normalise(text))
        return [self._by_source[match.group(1).casefold()] for match in found]

    def without(self, dropped: Sequence[Term]) -> "Glossary":
        """Leave some terms out.

        Parameters
        ----------
        dropped : Sequence[Term]
            Which.

        Returns
        -------
        Glossary
            The others.
        """
        return Glossary([each for each in self.terms if each not in dropped])


def read_glossary(path: Path) -> Glossary:
    """Read a glossary: on each line a source term, a tab, and the term that must translate it.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    Glossary
        Its terms; empty lines are skipped.
    """
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
        other = terms.setdefault(term.source.casefold(), term)
        if other.target != term.target:
            raise DataError(
                f"{place}: “{term.source}” is “{term.target}” here but “{other.target}” in "
                f"{other.place}; keep one of them"
            )
    return Glossary(list(terms.values()))


def read_forbidden(path: Path) -> list[ForbiddenPhrase]:
    """Read words that must not appear, one a line.

    Parameters
    ----------
    path : Path
        The file.

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
        phrases.append(ForbiddenPhrase(normalise(line), f"{path}:{number}"))
    return phrases


def find_contradiction(term: Term, forbidden: Sequence[ForbiddenPhrase]) -> ForbiddenPhrase | None:
    """Find what forbids a term that is required.

    Parameters
    ----------
    term : Term
        The term.
    forbidden : Sequence[ForbiddenPhrase]
        Words that must not appear.

    Returns
    -------
    ForbiddenPhrase | None
        Words that the term contains; None if it contains none of them.
    """
    return next((each for each in forbidden if find_words(term.target, each.text)), None)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Give the lines that are not empty, with their numbers."""
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
