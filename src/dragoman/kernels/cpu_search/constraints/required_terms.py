"""Beam search with required terms: hypotheses compete within banks of equal progress.

The compiled form of `dragoman.decoding.constraints.constrained_beam`, one slot at a time.
"""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import borrow, compiled
from dragoman.kernels.cpu_search.slots import (
    TERM_STATE,
    TERMS_MET,
    append_token,
    commit_step,
    finish_hypothesis,
)


class Candidates(NamedTuple):
    """Candidate extensions of a slot's hypotheses, in the order in which they were proposed."""

    totals: np.ndarray
    tokens: np.ndarray
    parents: np.ndarray
    states: np.ndarray
    met: np.ndarray
    done: np.ndarray  # subwords of required terms written so far


@compiled
def count_most_term_tokens(terms) -> int:
    """Return the largest number of term subwords of any sentence."""
    return np.diff(terms.alphabet_starts).max()


@compiled
def list_term_tokens(sentence, terms, requested) -> None:
    """List the subwords of a sentence's terms, whose scores are requested."""
    start, past = terms.alphabet_starts[sentence], terms.alphabet_starts[sentence + 1]
    for place in range(len(requested)):
        requested[place] = terms.alphabets[min(start + place, past - 1)]


@compiled
def advance_term_automaton(sentence, state, met, token, alphabet, terms) -> tuple[int, int]:
    """Advance the term automaton of a sentence by one token."""
    column = np.searchsorted(alphabet, token)
    if column == len(alphabet) or alphabet[column] != token:
        column = len(alphabet) + terms.kinds[token]
    entry = terms.entry_starts[sentence] + state * (len(alphabet) + terms.num_kinds) + column
    for block in terms.met[entry]:
        missing = block & ~met
        met |= missing & -missing
    return terms.targets[entry], met


@compiled
def count_term_tokens(sentence, state, met, sizes, terms) -> tuple[int, int]:
    """Count the term subwords that a hypothesis has written, and those still missing."""
    done, needed, gain, saved = 0, 0, 0, 0
    for bit in range(len(sizes)):
        needed += sizes[bit]
        done += sizes[bit] * (met >> bit & 1)
    for block, far, less in terms.leads[terms.state_starts[sentence] + state]:
        if block & ~met:
            gain, saved = max(gain, far), max(saved, less)
    return done + gain, needed - done - saved


@compiled
def propose_candidates(
    slot, first_row, forced, best, tokens, requested_scores, slots, sentences, rules, terms, room
) -> int:
    """List the extensions that can still satisfy all terms: best tokens and term subwords."""
    sentence, count = slots.sentences[slot], 0
    start, past = terms.alphabet_starts[sentence], terms.alphabet_starts[sentence + 1]
    alphabet = terms.alphabets[start:past]
    sizes = terms.sizes[terms.size_starts[sentence] : terms.size_starts[sentence + 1]]
    every = (1 << len(sizes)) - 1
    places_left = sentences.limits[sentence] - slots.lengths[slot] - 2
    for beam in range(slots.counts[slot]):
        row, is_free = first_row + beam, forced[first_row + beam] < 0
        state, met = slots.progress[slot, beam, TERM_STATE], slots.progress[slot, beam, TERMS_MET]
        for index in range(best.shape[1] + len(alphabet) * is_free):
            if index < best.shape[1]:
                token, log = tokens[row, index], best[row, index]
                place = np.searchsorted(alphabet, token)
                if is_free and place < len(alphabet) and alphabet[place] == token:
                    continue  # proposed again below as a term subword
            else:
                place = index - best.shape[1]
                token, log = alphabet[place], requested_scores[row, place]
            if log == -np.inf:
                continue
            after, now = advance_term_automaton(sentence, state, met, token, alphabet, terms)
            done, missing = count_term_tokens(sentence, after, now, sizes, terms)
            if (token == rules.eos_id and now != every) or (
                token != rules.eos_id and missing > places_left
            ):
                continue
            room.totals[count], room.tokens[count] = log + slots.alive[slot, beam], token
            room.parents[count], room.done[count] = beam, done
            room.states[count], room.met[count] = after, now
            count += 1
    return count


@compiled
def sort_falling(scores, order, spare) -> None:
    """Sort numbers in falling order, stably."""
    count = len(scores)
    for place in range(count):
        order[place] = place
    length = 1
    while length < count:
        for start in range(0, count, 2 * length):
            middle, past = min(start + length, count), min(start + 2 * length, count)
            left, right = start, middle
            for place in range(start, past):
                takes_left = left < middle and (
                    right == past or scores[order[left]] >= scores[order[right]]
                )
                if takes_left:
                    spare[place] = order[left]
                    left += 1
                else:
                    spare[place] = order[right]
                    right += 1
        order[:count] = spare[:count]
        length *= 2


@compiled
def extend_with_terms(
    slot, first_row, forced, best, tokens, requested_scores, slots, sentences, rules, terms
) -> None:
    """Extend the hypotheses of a slot by one token, or end those that have all terms.

    Notes
    -----
    Candidates are divided into banks by how many subwords of terms they have written; the best of
    each bank live on, then the second best, until there are as many as may live.
    """
    terms = borrow(terms)
    sentence, num_beams = slots.sentences[slot], rules.num_beams
    most = slots.counts[slot] * (best.shape[1] + requested_scores.shape[1])
    room = Candidates(
        np.empty(most, np.float32), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
    )  # fmt: skip
    count = propose_candidates(
        slot, first_row, forced, best, tokens, requested_scores, slots, sentences, rules, terms,
        room,
    )  # fmt: skip
    order, ranks = np.empty(count, np.int64), np.empty(count, np.int64)
    sort_falling(room.totals[:count], order, ranks)
    needed = terms.sizes[terms.size_starts[sentence] : terms.size_starts[sentence + 1]].sum()
    in_bank = np.zeros(num_beams, np.int64)
    last_rank = -1
    for place in range(count):
        each = order[place]
        # With fewer hypotheses than banks, neighbouring banks are merged.
        bank = room.done[each]
        if needed >= num_beams:
            bank = bank * (num_beams - 1) // needed
        rank = in_bank[bank]
        in_bank[bank] += 1
        ranks[place] = -1
        if rank >= 2 * num_beams:
            continue
        if room.tokens[each] == rules.eos_id:
            finish_hypothesis(slot, room.totals[each], room.parents[each], slots, rules)
        else:
            ranks[place] = rank
            last_rank = max(last_rank, rank)
    chosen, living = np.empty(num_beams, np.int64), 0
    for rank in range(last_rank + 1):
        for place in range(count):
            if ranks[place] == rank and living < num_beams:
                each = order[place]
                append_token(
                    slot, living, room.tokens[each], room.parents[each], room.totals[each], slots
                )
                chosen[living] = each
                living += 1
        if living == num_beams:
            break
    commit_step(slot, living, slots)
    for beam in range(living):
        slots.progress[slot, beam, TERM_STATE] = room.states[chosen[beam]]
        slots.progress[slot, beam, TERMS_MET] = room.met[chosen[beam]]
