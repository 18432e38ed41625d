"""Tokenise required terms for a target vocabulary, and check that translations have them."""

import functools
from collections.abc import Sequence

import numpy as np

from dragoman.decoding.constraints.spelling import TokenFacts, describe_token, spell_pieces
from dragoman.decoding.constraints.term_automaton import (
    END_KIND,
    Requirement,
    Spelling,
    TermAutomaton,
    build_automaton,
    count_subwords,
    kind_of,
    require_terms,
    spell_term,
)
from dragoman.text.vocabulary import TextVocabulary

NARROWEST_BEAM = 4
"""The least that a beam is taken for where there are terms."""
MOST_BEAMS_OF_TERMS = 8
"""How many times as many hypotheses as the beam a sentence with terms has at most."""


class TermSpeller:
    """Tokenises terms for one target vocabulary.

    Parameters
    ----------
    vocabulary : TextVocabulary
        Of the target.
    """

    def __init__(self, vocabulary: TextVocabulary) -> None:
        self._vocabulary = vocabulary
        self._facts: dict[int, TokenFacts] = {
            token_id: describe_token(units)
            for token_id, units in enumerate(spell_pieces(vocabulary))
        }
        kinds = [kind_of(facts) for facts in self._facts.values()]
        kinds[vocabulary.eos_id] = END_KIND
        self.kinds = np.array(kinds, np.int64)
        self._spell = functools.lru_cache(maxsize=100_000)(
            lambda text: spell_term(text, vocabulary)
        )
        self._build = functools.lru_cache(maxsize=10_000)(
            lambda requirements: build_automaton(requirements, self._facts)
        )

    def spell(self, term: str) -> tuple[Spelling, ...]:
        """Find the tokenisations of a term."""
        return self._spell(term)

    def require(self, terms: Sequence[str]) -> tuple[Requirement, ...]:
        """Count how often each term must appear in a translation."""
        return require_terms(terms, {each: self.spell(each) for each in terms})

    def automaton(self, requirements: tuple[Requirement, ...]) -> TermAutomaton:
        """Build the automaton that recognises terms."""
        return self._build(requirements)

    def is_met(self, requirements: tuple[Requirement, ...], tokens: Sequence[int]) -> bool:
        """Say whether a translation has all terms."""
        machine = self.automaton(requirements)
        columns = {token: column for column, token in enumerate(machine.alphabet.tolist())}
        state = met = 0
        for token in (*tokens, self._vocabulary.eos_id):
            kind = END_KIND if token == self._vocabulary.eos_id else kind_of(self._facts[token])
            column = columns.get(token, len(columns) + kind)
            for block in machine.met[state, column].tolist():
                missing = block & ~met
                met |= missing & -missing
            state = machine.targets[state, column]
        return met == (1 << len(machine.sizes)) - 1


def count_beams(beam_size: int, requirements: Sequence[Requirement]) -> int:
    """Compute the beam size of a sentence with terms.

    Returns
    -------
    int
        What is usual if it has none; else twice that, or one more for each subword of a term, so
        that at each number of subwords that are written there is at least one.
    """
    if not requirements:
        return beam_size
    beam_size = max(beam_size, NARROWEST_BEAM)
    wanted = max(2 * beam_size, beam_size + count_subwords(requirements))
    return min(wanted, MOST_BEAMS_OF_TERMS * beam_size)
