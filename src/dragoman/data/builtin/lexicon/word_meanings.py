"""Words that carry the meaning nodes they express, and the text and alignment made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_CLOSING_MARKS = frozenset({".", ",", "?", "!"})
_OPENING_MARKS = frozenset({"¿", "¡"})
PUNCTUATION = _CLOSING_MARKS | _OPENING_MARKS


@dataclass(slots=True)
class Word:
    """A word of a sentence under construction.

    Parameters
    ----------
    text : str
        The word as written; a final “’” joins it to the next word, a first one to the word before.
    nodes : frozenset[str]
        Names of the nodes of the meaning that the word expresses.
    prevocalic : str
        The form taken before a vowel sound (“l’” for “le”); empty when it never changes.
    article : bool
        Whether it is an article, and so contracts with the preposition before it.
    """

    text: str
    nodes: frozenset[str]
    prevocalic: str = ""
    article: bool = False


def make_words(text: str, *nodes: str) -> list[Word]:
    """Make one word of every blank-separated part of a text."""
    shared = frozenset(nodes)
    return [Word(part, shared) for part in text.split()]


def make_marked_words(text: str, path: str) -> list[Word]:
    """Make words of a fixed expression whose words are marked with their node.

    Parameters
    ----------
    text : str
        Words such as “semaine:w”, where the letters after the colon name nodes, one letter each.
    path : str
        The node under which the expression's own nodes lie.
    """
    words = []
    for part in text.split():
        form, _, marks = part.partition(":")
        words.append(Word(form, frozenset(f"{path}/{mark}" for mark in marks)))
    return words


def join_texts(texts: Sequence[str], *, space_before_marks: bool) -> str:
    """Join the words of a sentence into its text."""
    pieces: list[str] = []
    joined_to_next = True
    for text in texts:
        apart = not joined_to_next
        if text in _CLOSING_MARKS:
            apart = space_before_marks and text in "?!"
        elif text.startswith("’"):
            apart = False
        if apart:
            pieces.append(" ")
        pieces.append(text)
        joined_to_next = text in _OPENING_MARKS or (len(text) > 1 and text.endswith("’"))
    return "".join(pieces)


def capitalise_first(words: Iterable[Word]) -> None:
    """Give the first word that is not punctuation a capital, in place."""
    for word in words:
        if word.text not in PUNCTUATION:
            word.text = word.text[0].upper() + word.text[1:]
            return


def align_words(source: Sequence[Word], target: Sequence[Word]) -> tuple[tuple[int, int], ...]:
    """Align the words that express a common node."""
    places: dict[str, list[int]] = {}
    for target_index, word in enumerate(target):
        for node in word.nodes:
            places.setdefault(node, []).append(target_index)
    pairs = {
        (source_index, target_index)
        for source_index, word in enumerate(source)
        for node in word.nodes
        for target_index in places.get(node, ())
    }
    return tuple(sorted(pairs))
