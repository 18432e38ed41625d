"""Compile forbidden phrases into an automaton over subwords, however these spell them."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dragoman.decoding.constraints.spelling import Unit, is_word_character, spell_pieces
from dragoman.kernels.cpu_search.task import ForbiddenTable
from dragoman.text.normalise import normalise
from dragoman.text.vocabulary import TextVocabulary

AT_START = 1
"""The place of a hypothesis that has no word yet."""


class _Place(NamedTuple):
    """A state of the automaton: how far forbidden phrases have been spelt."""

    may_begin: bool
    nodes: frozenset[int]
    is_complete: bool


class _Branch(NamedTuple):
    """A trie node: subwords spelt so far, and children by the next character."""

    token_ids: list[int]
    below: dict[bytes, "_Branch"]


_AFTER_WORD = _Place(may_begin=False, nodes=frozenset(), is_complete=False)
_AFTER_MARK = _Place(may_begin=True, nodes=frozenset(), is_complete=False)


class _Phrases:
    """A trie of all forbidden phrases, byte by byte, in lower and upper case."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self.children: list[dict[int, int]] = [{}, {}]  # 0 begins words, 1 anything
        self._below: dict[tuple[int, str], int] = {}
        self.ends: set[int] = set()
        self.ends_of_words: set[int] = set()
        for phrase in phrases:
            self._add(normalise(phrase))

    def _add(self, phrase: str) -> None:
        node = 0 if is_word_character(phrase[0]) else 1
        for character in phrase.lower():
            node = self._descend(node, character)
            if character == " ":  # however many spaces are written, one is read
                self.children[node][ord(" ")] = node
        (self.ends_of_words if is_word_character(phrase[-1]) else self.ends).add(node)

    def _descend(self, node: int, character: str) -> int:
        """Add a child for a character; lower and upper case share one node."""
        if (node, character) not in self._below:
            target = self._make_node()
            for case in (character, character.upper()):
                *first, last = case.encode()
                above = node
                for byte in first:
                    if byte not in self.children[above]:
                        self.children[above][byte] = self._make_node()
                    above = self.children[above][byte]
                self.children[above].setdefault(last, target)
            self._below[node, character] = target
        return self._below[node, character]

    def _make_node(self) -> int:
        self.children.append({})
        return len(self.children) - 1

    def read(self, place: _Place, units: Sequence[Unit]) -> _Place | None:
        """Advance by the characters of a subword; None: a forbidden phrase is then complete."""
        may_begin, nodes, is_complete = place
        for unit in units:
            if is_complete and not unit.is_word:
                return None
            begun = {*nodes, 1, 0} if may_begin else {*nodes, 1}
            for byte in unit.spelt:
                begun = {self.children[node][byte] for node in begun if byte in self.children[node]}
            if begun & self.ends:
                return None
            nodes, is_complete = frozenset(begun), bool(begun & self.ends_of_words)
            may_begin = not unit.is_word
        return _Place(may_begin, nodes, is_complete)


def make_forbidden_table(phrases: Sequence[str], vocabulary: TextVocabulary) -> ForbiddenTable:
    """Compile forbidden phrases for one vocabulary.

    Parameters
    ----------
    phrases : Sequence[str]
        Words, or several in a row, that must not appear as whole words, in whatever case.
    vocabulary : TextVocabulary
        Of the target.

    Notes
    -----
    Most subwords lead nowhere whatever came before; for each place only those few are kept that go
    on. So the table grows with the phrases, not with phrases times vocabulary, and a step costs one
    look into a sorted list. Where a phrase is complete, all that would end the word is ruled out,
    the end symbol included: “cat” being forbidden, “cats” is not. A byte that is no ASCII counts as
    the end of a word and as its beginning, so that nothing slips through.
    """
    return _TableMaker(phrases, vocabulary).make()


class _TableMaker:
    """Makes the transition table; states are numbered as they are found."""

    def __init__(self, phrases: Sequence[str], vocabulary: TextVocabulary) -> None:
        self._vocabulary = vocabulary
        self._phrases = _Phrases(phrases)
        self._spelt = spell_pieces(vocabulary)
        self._tree = _tree_of(self._spelt)
        self._numbers: dict[_Place, int] = {}
        self._places: list[_Place] = []

    def make(self) -> ForbiddenTable:
        for place in (_AFTER_WORD, _AFTER_MARK):
            self._number(place)
        defaults, (anywhere, after_mark) = self._lead_from_nowhere()
        targets, closing = self._follow_phrases(after_mark - anywhere)
        keys = sorted(targets)
        pad_id, width = self._vocabulary.pad_id, max(map(len, closing))
        ends_word = [not units or not units[0].is_word for units in self._spelt]
        for special in (self._vocabulary.unk_id, pad_id):
            ends_word[special] = False
        return ForbiddenTable(
            banned=np.array(sorted(anywhere), np.int64),
            closing=np.array(
                [[*row, *[pad_id] * (width - len(row))] for row in closing], np.int64
            ).reshape(len(closing), width),
            is_complete=np.array([place.is_complete for place in self._places], np.bool_),
            ends_word=np.array(ends_word, np.bool_),
            keys=np.array(keys, np.int64),
            targets=np.array([targets[key] for key in keys], np.int64),
            defaults=np.array(defaults, np.int64),
            may_begin=np.array([place.may_begin for place in self._places], np.int64),
        )

    def _number(self, place: _Place) -> int:
        """Return the number of a state, assigned when it is first seen."""
        if place not in self._numbers:
            self._numbers[place] = len(self._places)
            self._places.append(place)
        return self._numbers[place]

    def _lead_from_nowhere(self) -> tuple[list[list[int]], list[set[int]]]:
        """Compute the transitions of the start states, after a word and after a mark."""
        targets: list[list[int]] = []
        forbidden: list[set[int]] = []
        for start in (_AFTER_WORD, _AFTER_MARK):
            after = [self._phrases.read(start, units) for units in self._spelt]
            targets.append([self._number(each or start) for each in after])
            forbidden.append({token_id for token_id, each in enumerate(after) if each is None})
        return targets, forbidden

    def _follow_phrases(self, after_mark: set[int]) -> tuple[dict[int, int], list[set[int]]]:
        """Compute the transitions of all states that have begun a phrase.

        More places are found on the way.
        """
        targets: dict[int, int] = {}
        closing: list[set[int]] = []
        while len(closing) < len(self._places):
            number = len(closing)
            place = self._places[number]
            closing.append(set(after_mark) if place.may_begin else set())
            for token_id in set(self._going_on(place)):
                units = self._spelt[token_id]
                after = self._phrases.read(place, units)
                if after is not None:
                    targets[number * len(self._spelt) + token_id] = self._number(after)
                elif not place.is_complete or units[0].is_word:
                    closing[number].add(token_id)
        return targets, closing

    def _going_on(self, place: _Place) -> Iterator[int]:
        """Find the subwords whose first characters continue what a state has begun."""
        children = self._phrases.children
        todo = [(self._tree, set(place.nodes))]
        while todo:
            branch, nodes = todo.pop()
            for spelt, longer in branch.below.items():
                after = set(nodes)
                for byte in spelt:
                    after = {children[node][byte] for node in after if byte in children[node]}
                if after:
                    yield from longer.token_ids
                    todo.append((longer, after))
                    if after & (self._phrases.ends | self._phrases.ends_of_words):
                        yield from _all_below(longer)


def _tree_of(spelt: Sequence[Sequence[Unit]]) -> _Branch:
    """Build a trie of the subwords of a vocabulary."""
    tree = _Branch([], {})
    for token_id, units in enumerate(spelt):
        branch = tree
        for unit in units:
            branch = branch.below.setdefault(unit.spelt, _Branch([], {}))
        branch.token_ids.append(token_id)
    return tree


def _all_below(branch: _Branch) -> Iterator[int]:
    """Yield every subword below a trie node."""
    for each in branch.below.values():
        yield from each.token_ids
        yield from _all_below(each)
