"""Beam search for translations in which terms must appear."""

import functools
from collections.abc import Sequence
from typing import TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from dragoman.decoding.candidates import Candidates, Extensions, Moment, count_candidates, find_best
from dragoman.decoding.scorer import IMPOSSIBLE, WordScores
from dragoman.decoding.spelling import TokenFacts, describe_token, spell_pieces
from dragoman.decoding.term_automaton import (
    END_KIND,
    NUM_KINDS,
    Lead,
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

# A sentence with terms has a beam for each number of subwords of terms that are written, up to so
# many, and none narrower than this.
MOST_BEAMS = 8
NARROWEST_BEAM = 4

_NO_LEAD = Lead(0, 0, 0)
Item = TypeVar("Item")


class TermSpeller:
    """What a target vocabulary has to do with terms, found out once.

    Parameters
    ----------
    vocabulary : TextVocabulary
        Of the target.
    device : torch.device
        Where translations are searched for.
    """

    def __init__(self, vocabulary: TextVocabulary, device: torch.device) -> None:
        self._vocabulary = vocabulary
        self._facts: dict[int, TokenFacts] = {
            token_id: describe_token(units)
            for token_id, units in enumerate(spell_pieces(vocabulary))
        }
        kinds = [kind_of(facts) for facts in self._facts.values()]
        kinds[vocabulary.eos_id] = END_KIND
        self.kinds = torch.tensor(kinds, device=device)
        self._spell = functools.lru_cache(maxsize=100_000)(
            lambda text: spell_term(text, vocabulary)
        )
        self._build = functools.lru_cache(maxsize=10_000)(
            lambda requirements: build_automaton(requirements, self._facts)
        )

    def spell(self, term: str) -> tuple[Spelling, ...]:
        """Find how a term may be written.

        Parameters
        ----------
        term : str
            The term.

        Returns
        -------
        tuple[Spelling, ...]
            The way after a space first; nothing if the vocabulary cannot write it.
        """
        return self._spell(term)

    def require(self, terms: Sequence[str]) -> tuple[Requirement, ...]:
        """Say what must appear in a translation, and how often.

        Parameters
        ----------
        terms : Sequence[str]
            Target terms that can be written, one for each place where one is wanted.

        Returns
        -------
        tuple[Requirement, ...]
            Each term once.
        """
        return require_terms(terms, {each: self.spell(each) for each in terms})

    def automaton(self, requirements: tuple[Requirement, ...]) -> TermAutomaton:
        """Make the machine that sees terms in a translation.

        Parameters
        ----------
        requirements : tuple[Requirement, ...]
            What must appear.

        Returns
        -------
        TermAutomaton
            Its tables.
        """
        return self._build(requirements)

    def is_met(self, requirements: tuple[Requirement, ...], tokens: Sequence[int]) -> bool:
        """Say whether a translation has all terms.

        Parameters
        ----------
        requirements : tuple[Requirement, ...]
            What must appear.
        tokens : Sequence[int]
            The subwords of the translation, without the end symbol.

        Returns
        -------
        bool
            True if each is there as often as it must be.
        """
        machine = self.automaton(requirements)
        columns = {token: column for column, token in enumerate(machine.alphabet)}
        state = met = 0
        for token in (*tokens, self._vocabulary.eos_id):
            kind = END_KIND if token == self._vocabulary.eos_id else kind_of(self._facts[token])
            column = columns.get(token, len(columns) + kind)
            for block in machine.met[state][column]:
                missing = block & ~met
                met |= missing & -missing
            state = machine.targets[state][column]
        return met == (1 << len(machine.sizes)) - 1


def count_beams(beam_size: int, requirements: Sequence[Requirement]) -> int:
    """Say how many hypotheses a sentence with terms has.

    Parameters
    ----------
    beam_size : int
        What is usual.
    requirements : Sequence[Requirement]
        What must appear.

    Returns
    -------
    int
        What is usual if it has none; else a beam more for each subword of a term, within reason.
    """
    if not requirements:
        return beam_size
    num_beams = min(1 + count_subwords(requirements), MOST_BEAMS)
    return max(beam_size, NARROWEST_BEAM) * num_beams


class RequiredTerms:
    """Beam search in which hypotheses compete only with those that are as far with their terms.

    Parameters
    ----------
    sentences : Sequence[tuple[Requirement, ...]]
        What must appear in each sentence's translation; nothing in some.
    speller : TermSpeller
        Of the target vocabulary.
    beam_size : int
        Hypotheses of a sentence without terms.
    eos_id : int
        The end symbol.

    Notes
    -----
    Dynamic beam allocation (Post & Vilar 2018): to the most probable words of each hypothesis
    come the subwords of the terms; candidates are divided into banks by how many subwords of terms
    they have written; the best of each bank live on, then the second best, until the beam is full.
    A translation ends when all its terms are there, and no candidate lives that could not write
    those that are missing within the largest length. A sentence with terms has more hypotheses
    than the beam (`count_beams`); one without has the very same as in plain search, whatever its
    company.
    """

    def __init__(
        self,
        sentences: Sequence[tuple[Requirement, ...]],
        speller: TermSpeller,
        *,
        beam_size: int,
        eos_id: int,
    ) -> None:
        self._eos_id = eos_id
        # Of each hypothesis, as each bank is about as wide as a usual beam.
        self._num_words = count_candidates(max(beam_size, NARROWEST_BEAM))
        self._kinds = speller.kinds
        device = self._kinds.device
        machines = [speller.automaton(each) for each in sentences]
        beams = [count_beams(beam_size, each) for each in sentences]
        self.num_beams = max(beams)

        def pad(rows: Sequence[Sequence[int]], filler: int) -> Tensor:
            width = max(map(len, rows))
            full = [[*row, *[filler] * (width - len(row))] for row in rows]
            return torch.tensor(full, dtype=torch.int64, device=device)

        self._alphabet = pad([each.alphabet for each in machines], -1)
        width = self._alphabet.size(1)
        self._tables = {
            "targets": pad([_flatten(each, each.targets, width) for each in machines], 0),
            "sizes": pad([each.sizes for each in machines], 0),
            "beams": torch.tensor(beams, device=device).unsqueeze(1),
        }
        self._num_met = max(len(now) for each in machines for row in each.met for now in row)
        for place in range(self._num_met):
            rows = [
                _flatten(each, [[_at(now, place, 0) for now in row] for row in each.met], width)
                for each in machines
            ]
            self._tables[f"met {place}"] = pad(rows, 0)
        self._num_leads = max(len(row) for each in machines for row in each.leads)
        for place in range(self._num_leads):
            leads = [[_at(row, place, _NO_LEAD) for row in each.leads] for each in machines]
            for name in Lead._fields:
                values = [[getattr(lead, name) for lead in row] for row in leads]
                self._tables[f"{name} {place}"] = pad(values, 0)
        self._num_columns = width + NUM_KINDS
        self._states = torch.zeros(len(machines), 1, dtype=torch.int64, device=device)
        self._met = torch.zeros_like(self._states)

    def choose(self, scores: WordScores, moment: Moment) -> Extensions:
        """Extend hypotheses by their most probable words and by those of their terms.

        Parameters
        ----------
        scores : WordScores
            Of all words.
        moment : Moment
            Where the search stands.

        Returns
        -------
        Extensions
            Those that end with all terms, and the best of those that are equally far.
        """
        totals, words = self._propose(scores, moment)
        num_words = words.size(1) // scores.logits.size(1)
        parents = torch.arange(words.size(1), device=words.device) // num_words
        parents = parents.expand_as(words)
        states, met = self._read(parents, words)
        done, missing = self._measure(states, met)
        is_end = words == self._eos_id
        all_met = met == (1 << self._table("sizes").ne(0).sum(1, keepdim=True)) - 1
        room = moment.limits.unsqueeze(1) - moment.length - 2
        totals = totals.masked_fill(torch.where(is_end, ~all_met, missing > room), IMPOSSIBLE)
        totals, order = totals.sort(dim=1, descending=True, stable=True)
        words, parents, states, met, done, is_end = (
            each.gather(1, order) for each in (words, parents, states, met, done, is_end)
        )
        ranks = self._rank(totals, done)
        ended = Candidates(totals.where(is_end & (ranks >= 0), IMPOSSIBLE), words, parents)
        ranks = ranks.masked_fill(is_end | (ranks < 0), totals.size(1))
        kept = ranks.sort(dim=1, stable=True).indices[:, : self.num_beams]
        lives = ranks.gather(1, kept) < totals.size(1)
        lives &= torch.arange(kept.size(1), device=kept.device) < self._table("beams")
        self._states, self._met = states.gather(1, kept), met.gather(1, kept)
        alive = totals.gather(1, kept).where(lives, IMPOSSIBLE)
        return Extensions(ended, Candidates(alive, words.gather(1, kept), parents.gather(1, kept)))

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Forget all sentences but these.

        Parameters
        ----------
        sentences : Int[Tensor, "kept"]
            Their places.
        """
        self._alphabet = self._alphabet[sentences]
        self._tables = {name: each[sentences] for name, each in self._tables.items()}
        self._states, self._met = self._states[sentences], self._met[sentences]

    def _table(self, name: str) -> Tensor:
        return self._tables[name]

    def _propose(self, scores: WordScores, moment: Moment) -> tuple[Tensor, Tensor]:
        """List each hypothesis's best words, then all subwords of its sentence's terms."""
        logs, words = find_best(scores, self._num_words, moment.forced)
        num_parents = words.size(1)
        alphabet = self._alphabet.unsqueeze(1).expand(-1, num_parents, -1)
        own = scores.of(alphabet.clamp(min=0)).masked_fill(alphabet < 0, IMPOSSIBLE)
        is_twice = (words.unsqueeze(3) == self._alphabet[:, None, None, :]).any(3)
        if moment.forced is not None:
            is_free = (moment.forced < 0)[:, None, None]
            is_twice, own = is_twice & is_free, own.where(is_free, IMPOSSIBLE)
        logs = torch.cat([logs.masked_fill(is_twice, IMPOSSIBLE), own], dim=2)
        words = torch.cat([words, alphabet.clamp(min=0)], dim=2)
        return (logs + moment.alive.unsqueeze(2)).flatten(1), words.flatten(1)

    def _read(self, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Let the machines read each candidate's word: their states, and the terms met."""
        width = self._alphabet.size(1)
        matches = words.unsqueeze(2) == self._alphabet.unsqueeze(1)
        columns = width + self._kinds[words]
        if width:
            columns = matches.int().argmax(2).where(matches.any(2), columns)
        places = self._states.gather(1, parents) * self._num_columns + columns
        met = self._met.gather(1, parents)
        for place in range(self._num_met):
            missing = self._table(f"met {place}").gather(1, places) & ~met
            met = met | (missing & -missing)
        return self._table("targets").gather(1, places), met

    def _measure(self, states: Tensor, met: Tensor) -> tuple[Tensor, Tensor]:
        """Count the subwords of terms that candidates have written, and that they still need."""
        sizes = self._table("sizes")
        bits = torch.arange(sizes.size(1), device=met.device)
        done = ((met.unsqueeze(2) >> bits & 1) * sizes.unsqueeze(1)).sum(2)
        gain, saved = torch.zeros_like(done), torch.zeros_like(done)
        for place in range(self._num_leads):
            block, far, less = (
                self._table(f"{name} {place}").gather(1, states) for name in Lead._fields
            )
            is_wanted = (block & ~met) != 0
            gain = torch.maximum(gain, far.where(is_wanted, 0))
            saved = torch.maximum(saved, less.where(is_wanted, 0))
        return done + gain, sizes.sum(1, keepdim=True) - done - saved

    def _rank(self, totals: Tensor, done: Tensor) -> Tensor:
        """Rank sorted candidates within their banks; −1 for those beyond what is looked at."""
        beams = self._table("beams")
        most = self._table("sizes").sum(1, keepdim=True)
        # With fewer hypotheses than banks, neighbouring banks are one.
        banks = torch.where(most < beams, done, done * (beams - 1) // most.clamp(min=1))
        ranks = rank_within(banks)
        looked_at = torch.where(beams > 1, 2 * beams, 1)
        return ranks.masked_fill((ranks >= looked_at) | (totals == IMPOSSIBLE), -1)


def rank_within(
    keys: Int[Tensor, "sentences candidates"],
) -> Int[Tensor, "sentences candidates"]:
    """Rank candidates among those with the same key.

    Parameters
    ----------
    keys : Int[Tensor, "sentences candidates"]
        Their keys.

    Returns
    -------
    Int[Tensor, "sentences candidates"]
        For each how many before it in its row have its key.
    """
    ordered, order = keys.sort(dim=1, stable=True)
    places = torch.arange(keys.size(1), device=keys.device).expand_as(keys)
    is_same = torch.zeros_like(ordered, dtype=torch.bool)
    is_same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    firsts = places.masked_fill(is_same, 0).cummax(1).values
    return torch.zeros_like(keys).scatter(1, order, places - firsts)


def _at(items: Sequence[Item], place: int, filler: Item) -> Item:
    return items[place] if place < len(items) else filler


def _flatten(machine: TermAutomaton, rows: Sequence[Sequence[int]], width: int) -> list[int]:
    """Lay a machine's table out in one row, with as many columns as the widest machine's."""
    own = len(machine.alphabet)
    filler = [0] * (width - own)
    return [value for row in rows for value in (*row[:own], *filler, *row[own:])]
