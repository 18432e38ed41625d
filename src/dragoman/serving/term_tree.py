"""Trie of glossary terms by words."""

import re
from collections.abc import Iterable, Iterator

from dragoman.text.normalise import normalise

_TOKEN = re.compile(r"\w+|[^\w\s]")


class _Node:
    """Trie node: children by word, and the index of a term that ends here."""

    __slots__ = ("following", "place")

    def __init__(self) -> None:
        self.following: dict[str, _Node] = {}
        self.place = -1


class TermTree:
    """Finds terms, ignoring case, in linear time.

    Parameters
    ----------
    terms : Iterable[str]
        The terms.

    Notes
    -----
    The cost is that of reading a text, however many terms there are. Spaces do not matter, so more
    may be found than a search that heeds them would find, but never less.
    """

    def __init__(self, terms: Iterable[str]) -> None:
        self._root = _Node()
        for place, term in enumerate(terms):
            node = self._root
            for token in split_words(term):
                node = node.following.setdefault(token, _Node())
            node.place = place

    def find(self, text: str) -> Iterator[int]:
        """List the indices of terms that occur in a text."""
        for _, _, place in self._match(split_words(text)):
            yield place

    def count(self, text: str) -> int:
        """Count the occurrences of terms in a text.

        Returns
        -------
        int
            How often; of those that overlap the first counts, and of those that begin at the same
            place the longest.
        """
        ends: dict[int, int] = {}
        for begin, end, _ in self._match(split_words(text)):
            ends[begin] = end
        number = reached = 0
        for begin, end in ends.items():
            if begin >= reached:
                number, reached = number + 1, end
        return number

    def _match(self, tokens: list[str]) -> Iterator[tuple[int, int, int]]:
        """Yield begin, end and index of each match, by begin and then length."""
        for begin in range(len(tokens)):
            node: _Node | None = self._root
            end = begin
            while node is not None and end < len(tokens):
                node = node.following.get(tokens[end])
                end += 1
                if node is not None and node.place >= 0:
                    yield begin, end, node.place


def split_words(text: str) -> list[str]:
    """Split a text into case-folded words and marks."""
    return _TOKEN.findall(normalise(text).casefold())
