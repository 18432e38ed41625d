"""Beam search with required terms, for any model (constraint banks)."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from dragoman.decoding.constraints.term_automaton import NUM_KINDS, Requirement, TermAutomaton
from dragoman.decoding.constraints.term_speller import NARROWEST_BEAM, TermSpeller, count_beams
from dragoman.decoding.engines.search_engine import count_candidates
from dragoman.decoding.search.candidates import Candidates, Extensions, StepContext, find_best
from dragoman.decoding.search.scorer import IMPOSSIBLE, WordScores
from dragoman.shapes import Int


class ConstrainedBeamChooser:
    """Choose beams in banks: hypotheses compete only with those that have as many terms.

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
    device : torch.device
        Where translations are searched for.

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
        device: torch.device,
    ) -> None:
        self._eos_id = eos_id
        # Of each hypothesis, as each bank is about as wide as a usual beam.
        self._num_words = count_candidates(max(beam_size, NARROWEST_BEAM))
        self._kinds = torch.from_numpy(speller.kinds).to(device)
        machines = [speller.automaton(each) for each in sentences]
        beams = [count_beams(beam_size, each) for each in sentences]
        self.num_beams = max(beams)

        def pad(rows: Sequence[np.ndarray], filler: int) -> Tensor:
            width = max(map(len, rows))
            full = [np.pad(row, (0, width - len(row)), constant_values=filler) for row in rows]
            return torch.from_numpy(np.stack(full)).to(device)

        self._alphabet = pad([each.alphabet for each in machines], -1)
        width = self._alphabet.size(1)
        self._tables = {
            "targets": pad([_spread(each, each.targets, width) for each in machines], 0),
            "sizes": pad([each.sizes for each in machines], 0),
            "beams": torch.tensor(beams, device=device).unsqueeze(1),
        }
        self._num_met = max(each.met.shape[2] for each in machines)
        for place in range(self._num_met):
            rows = [_spread(each, _at(each.met, place), width) for each in machines]
            self._tables[f"met {place}"] = pad(rows, 0)
        self._num_leads = max(each.leads.shape[1] for each in machines)
        for place in range(self._num_leads):
            leads = [_at(each.leads.swapaxes(1, 2), place) for each in machines]
            for number in range(3):
                self._tables[f"lead {number} {place}"] = pad([each[:, number] for each in leads], 0)
        self._num_columns = width + NUM_KINDS
        self._states = torch.zeros(len(machines), 1, dtype=torch.int64, device=device)
        self._met = torch.zeros_like(self._states)

    def choose(self, scores: WordScores, context: StepContext) -> Extensions:
        """Extend hypotheses by their most probable tokens and by tokens of their terms.

        Returns
        -------
        Extensions
            Those that end with all terms, and the best of those that are equally far.
        """
        totals, words = self._propose(scores, context)
        num_words = words.size(1) // scores.logits.size(1)
        parents = torch.arange(words.size(1), device=words.device) // num_words
        parents = parents.expand_as(words)
        states, met = self._read(parents, words)
        done, missing = self._measure(states, met)
        is_end = words == self._eos_id
        all_met = met == (1 << self._table("sizes").ne(0).sum(1, keepdim=True)) - 1
        room = context.limits.unsqueeze(1) - context.length - 2
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
        """Drop all sentences but these."""
        self._alphabet = self._alphabet[sentences]
        self._tables = {name: each[sentences] for name, each in self._tables.items()}
        self._states, self._met = self._states[sentences], self._met[sentences]

    def _table(self, name: str) -> Tensor:
        return self._tables[name]

    def _propose(self, scores: WordScores, context: StepContext) -> tuple[Tensor, Tensor]:
        """List each hypothesis's best tokens, then all tokens of its sentence's terms."""
        logs, words = find_best(scores, self._num_words, context.forced)
        num_parents = words.size(1)
        alphabet = self._alphabet.unsqueeze(1).expand(-1, num_parents, -1)
        own = scores.of(alphabet.clamp(min=0)).masked_fill(alphabet < 0, IMPOSSIBLE)
        is_twice = (words.unsqueeze(3) == self._alphabet[:, None, None, :]).any(3)
        if context.forced is not None:
            is_free = (context.forced < 0)[:, None, None]
            is_twice, own = is_twice & is_free, own.where(is_free, IMPOSSIBLE)
        logs = torch.cat([logs.masked_fill(is_twice, IMPOSSIBLE), own], dim=2)
        words = torch.cat([words, alphabet.clamp(min=0)], dim=2)
        return (logs + context.alive.unsqueeze(2)).flatten(1), words.flatten(1)

    def _read(self, parents: Tensor, words: Tensor) -> tuple[Tensor, Tensor]:
        """Advance the automata by each candidate's token; return states and met terms."""
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
        """Count the term tokens that candidates have written, and still need."""
        sizes = self._table("sizes")
        bits = torch.arange(sizes.size(1), device=met.device)
        done = ((met.unsqueeze(2) >> bits & 1) * sizes.unsqueeze(1)).sum(2)
        gain, saved = torch.zeros_like(done), torch.zeros_like(done)
        for place in range(self._num_leads):
            block, far, less = (
                self._table(f"lead {number} {place}").gather(1, states) for number in range(3)
            )
            is_wanted = (block & ~met) != 0
            gain = torch.maximum(gain, far.where(is_wanted, 0))
            saved = torch.maximum(saved, less.where(is_wanted, 0))
        return done + gain, sizes.sum(1, keepdim=True) - done - saved

    def _rank(self, totals: Tensor, done: Tensor) -> Tensor:
        """Rank sorted candidates within their banks; −1 for those beyond the beam."""
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
    """Rank candidates among those with the same key."""
    ordered, order = keys.sort(dim=1, stable=True)
    places = torch.arange(keys.size(1), device=keys.device).expand_as(keys)
    is_same = torch.zeros_like(ordered, dtype=torch.bool)
    is_same[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    firsts = places.masked_fill(is_same, 0).cummax(1).values
    return torch.zeros_like(keys).scatter(1, order, places - firsts)


def _at(table: Int[np.ndarray, "*rows most"], place: int) -> Int[np.ndarray, "*rows"]:
    """Select one of several entries; zeros beyond the last."""
    return table[..., place] if place < table.shape[-1] else np.zeros(table.shape[:-1], table.dtype)


def _spread(
    machine: TermAutomaton, table: Int[np.ndarray, "states columns"], width: int
) -> Int[np.ndarray, "entries"]:
    """Pad an automaton's table to the width of the widest automaton."""
    own = len(machine.alphabet)
    filler = np.zeros((len(table), width - own), table.dtype)
    return np.concatenate([table[:, :own], filler, table[:, own:]], axis=1).ravel()
