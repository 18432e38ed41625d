"""Compile the required terms of a translation into an automaton over subwords."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dragoman.decoding.constraints.spelling import TokenFacts, is_word_character, word_pattern
from dragoman.shapes import Int
from dragoman.text.normalise import normalise
from dragoman.text.vocabulary import TextVocabulary

# What stands before the next subword: a word, a mark or a space, or the beginning of a sentence.
_AFTER_WORD, _AFTER_MARK, _AT_START = range(3)
# What a term may follow without a space; the first that the vocabulary has shows how it is cut.
_MARKS = "(’'-“.,"

NUM_KINDS = 17
"""Kinds of subwords that are in no term: sixteen by what they do at borders, and the end."""

END_KIND = 16
MOST_TERMS = 60
"""Terms of a sentence at most: each takes a bit of a whole number."""


class Spelling(NamedTuple):
    """One tokenisation of a term, where it may begin, and whether its last word must end."""

    tokens: tuple[int, ...]
    contexts: frozenset[int]
    must_end: bool


def kind_of(facts: TokenFacts) -> int:
    """Encode the boundary behaviour of a subword as a number."""
    return sum(fact << place for place, fact in enumerate(facts))


def spell_term(text: str, vocabulary: TextVocabulary) -> tuple[Spelling, ...]:
    """Find the tokenisations of a term.

    Returns
    -------
    tuple[Spelling, ...]
        As the vocabulary segments it after a space; after a mark without a space, as in “l’eau”
        or “(water”; and, if it begins with a small letter, with a capital where a sentence may
        begin. The first may stand anywhere. Nothing if the vocabulary cannot write the term.
    """
    text = normalise(text)
    must_end = is_word_character(text[-1])
    capital = text[0].upper() + text[1:]
    if not _spell_after_space(text, vocabulary):
        return ()
    found: dict[tuple[int, ...], Spelling] = {}
    for written, is_capital in ((text, False), (capital, True)):
        for is_apart, spell in ((True, _spell_after_space), (False, _spell_after_mark)):
            tokens = spell(written, vocabulary)
            contexts = {_AT_START}
            if not is_capital:
                contexts |= {_AFTER_MARK}
                contexts |= {_AFTER_WORD} if is_apart or not is_word_character(text[0]) else set()
            if tokens and tokens not in found:
                found[tokens] = Spelling(tokens, frozenset(contexts), must_end)
    return tuple(sorted(found.values(), key=lambda each: (-len(each.contexts), len(each.tokens))))


def can_spell(texts: Sequence[str], vocabulary: TextVocabulary) -> list[bool]:
    """Say which terms the vocabulary can write."""
    return [bool(ids) for ids in _spell_all([normalise(text) for text in texts], vocabulary)]


def _spell_after_space(text: str, vocabulary: TextVocabulary) -> tuple[int, ...]:
    return _spell_all([text], vocabulary)[0]


def _spell_all(texts: Sequence[str], vocabulary: TextVocabulary) -> list[tuple[int, ...]]:
    """Tokenise texts as they begin a line; nothing for those that cannot be written."""
    every = vocabulary.encode(texts)
    return [
        () if vocabulary.unk_id in ids or written != text else tuple(ids)
        for text, ids, written in zip(texts, every, vocabulary.decode(every), strict=True)
    ]


def _spell_after_mark(text: str, vocabulary: TextVocabulary) -> tuple[int, ...]:
    for mark in _MARKS:
        before, both = vocabulary.encode([mark, mark + text])
        is_known = vocabulary.unk_id not in both and both[: len(before)] == before
        if is_known and _writes(both, mark + text, vocabulary):
            return tuple(both[len(before) :])
    return ()


def _writes(ids: Sequence[int], text: str, vocabulary: TextVocabulary) -> bool:
    return vocabulary.decode([ids])[0] == text


class Requirement(NamedTuple):
    """A term, how often it must appear, and its tokenisations."""

    text: str
    times: int
    spellings: tuple[Spelling, ...]


def require_terms(
    targets: Sequence[str], spellings: dict[str, tuple[Spelling, ...]]
) -> tuple[Requirement, ...]:
    """Count how often each term must appear in a translation.

    Notes
    -----
    Where “cat” and “black cat” are both required, “cat” must appear twice, since it appears in
    “black cat” anyway.
    """
    counts = Counter(targets)
    requirements = []
    for text in counts:
        alone = re.compile(word_pattern([text]).pattern)
        times = sum(count * len(alone.findall(other)) for other, count in counts.items())
        requirements.append(Requirement(text, times, spellings[text]))
    return tuple(requirements)


class _State(NamedTuple):
    """An automaton state: the left context, terms begun, terms completed."""

    context: int
    begun: frozenset[tuple[int, int, int]]  # term, spelling, subwords of it
    complete: frozenset[int]


class TermAutomaton(NamedTuple):
    """Transition tables by state and column: a column for each token of a term, then one per kind.

    `alphabet` is in rising order. Terms have bits, as many as they must appear; `met` has those of
    the terms that are met, and `sizes` says how many subwords the term of each bit has after a
    space. `leads` are the terms that a state has begun: the bits of each, how far it is, and how
    many subwords that saves. Both are filled up with 0.
    """

    alphabet: Int[np.ndarray, "subwords"]
    targets: Int[np.ndarray, "states columns"]
    met: Int[np.ndarray, "states columns most"]
    leads: Int[np.ndarray, "states begun 3"]
    sizes: Int[np.ndarray, "terms"]


def build_automaton(
    requirements: Sequence[Requirement], facts: dict[int, TokenFacts]
) -> TermAutomaton:
    """Build the automaton that recognises required terms.

    Notes
    -----
    A state knows all spellings that are begun, so that terms may overlap and a false start costs
    nothing. A term whose last letter is written is met when its word ends.
    """
    alphabet = tuple(
        sorted({token for each in requirements for one in each.spellings for token in one.tokens})
    )
    kinds = [TokenFacts(*(bool(kind >> place & 1) for place in range(4))) for kind in range(16)]
    columns = [*((token, facts[token]) for token in alphabet), *((-1, kind) for kind in kinds)]
    blocks = _give_bits(requirements)
    states = [_State(_AT_START, frozenset(), frozenset())]
    numbers = {states[0]: 0}
    targets: list[list[int]] = []
    met: list[list[tuple[int, ...]]] = []
    for state in states:
        row, now = [], []
        for token, does in columns:
            after, terms = _read(state, token, does, requirements)
            if after not in numbers:
                numbers[after] = len(states)
                states.append(after)
            row.append(numbers[after])
            now.append(tuple(blocks[term] for term in sorted(terms)))
        targets.append([*row, 0])
        met.append([*now, tuple(blocks[term] for term in sorted(state.complete))])
    leads = [_find_leads(state, requirements, blocks) for state in states]
    most_met = max(1, *(len(now) for row in met for now in row))
    most_leads = max(1, *map(len, leads))
    return TermAutomaton(
        alphabet=np.array(alphabet, np.int64),
        targets=np.array(targets, np.int64),
        met=np.array([[[*now, *[0] * (most_met - len(now))] for now in row] for row in met]),
        leads=np.array([[*row, *[(0, 0, 0)] * (most_leads - len(row))] for row in leads]),
        sizes=np.array([_size(each) for each in requirements for _ in range(each.times)], np.int64),
    )


def _give_bits(requirements: Sequence[Requirement]) -> tuple[int, ...]:
    """Assign each term as many bits as times it must appear."""
    blocks, first = [], 0
    for each in requirements:
        blocks.append(((1 << each.times) - 1) << first)
        first += each.times
    return tuple(blocks)


def _size(requirement: Requirement) -> int:
    return len(requirement.spellings[0].tokens)


def _read(
    state: _State, token: int, does: TokenFacts, requirements: Sequence[Requirement]
) -> tuple[_State, set[int]]:
    """Advance by one token, −1 for any that is in no term; return the terms completed by it."""
    met = set() if does.continues_word else set(state.complete)
    complete: set[int] = set()
    begun: set[tuple[int, int, int]] = set()
    for term, requirement in enumerate(requirements if token >= 0 else ()):
        for number, spelling in enumerate(requirement.spellings):
            places = {place for one, other, place in state.begun if (one, other) == (term, number)}
            if state.context in spelling.contexts:
                places.add(0)
            for place in places:
                if spelling.tokens[place] != token:
                    continue
                if place + 1 < len(spelling.tokens):
                    begun.add((term, number, place + 1))
                elif spelling.must_end:
                    complete.add(term)
                else:
                    met.add(term)
    context = _find_context(state.context, does)
    return _State(context, frozenset(begun), frozenset(complete)), met


def _find_context(before: int, does: TokenFacts) -> int:
    """Find the left context of the next token."""
    if does.ends_with_word:
        return _AFTER_WORD
    if does.ends_sentence or (before == _AT_START and not does.has_word):
        return _AT_START
    return _AFTER_MARK


def _find_leads(
    state: _State, requirements: Sequence[Requirement], blocks: Sequence[int]
) -> list[tuple[int, int, int]]:
    """Find the terms that a state has begun, each at its furthest position."""
    found: dict[int, tuple[int, int]] = {}
    for term in state.complete:
        found[term] = (_size(requirements[term]),) * 2
    for term, number, place in state.begun:
        length, size = len(requirements[term].spellings[number].tokens), _size(requirements[term])
        far = (size * place // length, size - (length - place))
        found[term] = max(far, found.get(term, far))
    return [(blocks[term], *far) for term, far in sorted(found.items())]


def count_subwords(requirements: Sequence[Requirement]) -> int:
    """Count the tokens that required terms take."""
    return sum(each.times * len(each.spellings[0].tokens) for each in requirements)
