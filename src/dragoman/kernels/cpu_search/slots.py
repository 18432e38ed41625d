"""State of the sentences being translated and of their hypotheses.

Nothing is copied when one hypothesis continues another: each has a list of entries of the KV pool,
and entries on no list are free.
"""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.task import AT_START

TERM_STATE, TERMS_MET, FORBIDDEN_STATE, SAMPLE = range(4)
"""Columns of `Slots.progress`: state of the term automaton, terms met, state of the automaton of
forbidden phrases, and index of the sample."""
PROGRESS = 4
_END_SHARE, _END_MORE = 8, 5


class Slots(NamedTuple):
    """Sentences being translated, one row a slot."""

    sentences: np.ndarray  # index of the sentence; −1: none
    lengths: np.ndarray  # tokens so far
    counts: np.ndarray  # living hypotheses
    alive: np.ndarray  # their log-probabilities
    newest: np.ndarray  # their newest tokens
    own: np.ndarray  # KV entries of their tokens, [slots · hypotheses, steps]
    source: np.ndarray  # KV entries of the source, [slots, tokens]
    tokens: np.ndarray  # tokens added by each step, [slots, steps, hypotheses]
    parents: np.ndarray  # parent hypothesis of each
    logs: np.ndarray  # cumulated log-probabilities
    finished: np.ndarray  # scores of the best finished, in falling order
    finished_logs: np.ndarray
    finished_lengths: np.ndarray
    finished_parents: np.ndarray
    progress: np.ndarray  # progress of constraints, see `TERM_STATE`
    attention: np.ndarray  # cross-attention, [slots, steps, hypotheses, source tokens]


@compiled
def make_slots(num_slots, capacity, longest, rules) -> Slots:
    """Allocate empty slots."""
    beams, best = (num_slots, rules.num_beams), (num_slots, rules.num_best)
    history = (num_slots, capacity, rules.num_beams)
    return Slots(
        np.full(num_slots, -1, np.int64),
        np.zeros(num_slots, np.int64),
        np.zeros(num_slots, np.int64),
        np.zeros(beams, np.float32),
        np.zeros(beams, np.int64),
        np.empty((num_slots * rules.num_beams, capacity), np.uint32),
        np.empty((num_slots, longest), np.uint32),
        np.empty(history, np.int32),
        np.empty(history, np.int32),
        np.empty(history, np.float32),
        np.empty(best, np.float32),
        np.empty(best, np.float32),
        np.empty(best, np.int64),
        np.empty(best, np.int64),
        np.empty((num_slots, rules.num_beams, PROGRESS), np.int64),
        np.empty((num_slots * rules.is_aligned, capacity, rules.num_beams, longest), np.float32),
    )


@compiled
def start_sentence(slot, sentence, slots, rules) -> None:
    """Start a sentence in a slot with one empty hypothesis."""
    slots.sentences[slot], slots.lengths[slot], slots.counts[slot] = sentence, 0, 1
    slots.alive[slot, 0], slots.newest[slot, 0] = 0, rules.start_id
    slots.finished[slot] = -np.inf
    slots.progress[slot, 0] = 0
    slots.progress[slot, 0, FORBIDDEN_STATE] = AT_START


@compiled
def forced_token(slot, slots, sentences, rules) -> int:
    """Return the token that must come next, of a prefix or the end at the length limit; else −1."""
    sentence, length = slots.sentences[slot], slots.lengths[slot]
    if length + 1 >= sentences.limits[sentence]:
        return rules.eos_id
    if length < sentences.prefixes.shape[1]:
        return sentences.prefixes[sentence, length]
    return -1


@compiled
def list_repeated_tokens(slot, beam, slots, sentences, blocked) -> None:
    """List the tokens that would complete a phrase for the third time in a row."""
    sentence, length = slots.sentences[slot], slots.lengths[slot]
    blocked[:] = -1
    num_forced = 0
    while (
        num_forced < sentences.prefixes.shape[1] and sentences.prefixes[sentence, num_forced] >= 0
    ):
        num_forced += 1
    if length < num_forced:
        return
    past = np.empty(length, np.int64)
    for place in range(length - 1, -1, -1):
        past[place] = slots.tokens[slot, place, beam]
        beam = slots.parents[slot, place, beam]
    for period in range(1, min(len(blocked), (length + 1) // 3) + 1):
        place = length - 2 * period + 1
        while place < length and past[place] == past[place - period]:
            place += 1
        if place == length:
            blocked[period - 1] = past[length - period]


@compiled
def length_penalty(length, alpha) -> float:
    """Compute the length penalty, ((5 + length) / 6)^α, by which log-probabilities are divided."""
    return ((5.0 + length) / 6.0) ** alpha


@compiled
def find_rank(score, best) -> int:
    """Return the rank of a score among the best."""
    place = len(best)
    while place > 0 and score > best[place - 1]:
        place -= 1
    return place


@compiled
def insert_best(score, token, best, tokens) -> None:
    """Insert a token among the best, if its score suffices."""
    place = find_rank(score, best)
    for other in range(len(best) - 1, place, -1):
        best[other], tokens[other] = best[other - 1], tokens[other - 1]
    if place < len(best):
        best[place], tokens[place] = score, token


@compiled
def finish_hypothesis(slot, total, parent, slots, rules) -> None:
    """Add a finished hypothesis, if it is among the best."""
    length, scores = slots.lengths[slot], slots.finished[slot]
    score = np.float32(total / length_penalty(length + 1, rules.alpha))
    place = find_rank(score, scores)
    if place == len(scores):
        return
    for each in range(len(scores) - 1, place, -1):
        scores[each] = scores[each - 1]
        slots.finished_logs[slot, each] = slots.finished_logs[slot, each - 1]
        slots.finished_lengths[slot, each] = slots.finished_lengths[slot, each - 1]
        slots.finished_parents[slot, each] = slots.finished_parents[slot, each - 1]
    scores[place], slots.finished_logs[slot, place] = score, total
    slots.finished_lengths[slot, place], slots.finished_parents[slot, place] = length, parent


@compiled
def append_token(slot, living, token, parent, total, slots) -> None:
    """Record a living hypothesis: its parent, newest token and log-probability."""
    length = slots.lengths[slot]
    slots.tokens[slot, length, living] = token
    slots.parents[slot, length, living] = parent
    slots.logs[slot, length, living] = total


@compiled
def commit_step(slot, living, slots) -> None:
    """Replace the hypotheses of a slot by those recorded for this step."""
    length = slots.lengths[slot]
    progress = slots.progress[slot].copy()
    for beam in range(living):
        slots.alive[slot, beam] = slots.logs[slot, length, beam]
        slots.newest[slot, beam] = slots.tokens[slot, length, beam]
        slots.progress[slot, beam] = progress[slots.parents[slot, length, beam]]
    slots.counts[slot] = living
    slots.lengths[slot] = length + 1


@compiled
def extend_hypotheses(slot, first_row, best, tokens, slots, rules) -> None:
    """Extend the hypotheses of a slot by one token, or end them.

    Notes
    -----
    Of the best extensions, twice as many as hypotheses may live, those that end compete with the
    finished, and the best of the others live on. With one hypothesis only the best word counts.
    """
    count = best.shape[1]
    totals, chosen = np.full(count, -np.inf, np.float32), np.zeros(count, np.int64)
    for beam in range(slots.counts[slot]):
        for rank in range(count):
            total = best[first_row + beam, rank] + slots.alive[slot, beam]
            if total <= totals[-1]:  # and so are all after it
                break
            insert_best(total, beam * count + rank, totals, chosen)
    living = 0
    for index in range(count):
        if totals[index] == -np.inf:
            break
        parent = chosen[index] // count
        token = tokens[first_row + parent, chosen[index] % count]
        if token == rules.eos_id:
            finish_hypothesis(slot, totals[index], parent, slots, rules)
        elif living < rules.num_beams:
            append_token(slot, living, token, parent, totals[index], slots)
            living += 1
    commit_step(slot, living, slots)


@compiled
def is_done(slot, slots, sentences, rules) -> bool:
    """Say whether no living hypothesis of a slot can overtake the finished ones."""
    length, limit = slots.lengths[slot], sentences.limits[slots.sentences[slot]]
    if slots.counts[slot] == 0 or length >= limit:
        return True
    farthest = min(limit, length + length // _END_SHARE + _END_MORE)
    highest = slots.alive[slot, : slots.counts[slot]].max()
    bound = highest / length_penalty(farthest, rules.alpha)
    return slots.finished[slot, -1] >= bound


@compiled
def write_results(slot, slots, sentences, results) -> None:
    """Write the finished translations of a slot, following parents from the end."""
    sentence = slots.sentences[slot]
    limit = sentences.limits[sentence]
    for rank in range(results.scores.shape[1]):
        results.scores[sentence, rank] = slots.finished[slot, rank]
        if slots.finished[slot, rank] == -np.inf:
            continue
        length = slots.finished_lengths[slot, rank]
        beam = slots.finished_parents[slot, rank]
        results.lengths[sentence, rank] = length
        start = results.starts[sentence] + rank * limit
        results.logs[start + length] = slots.finished_logs[slot, rank]
        for place in range(length - 1, -1, -1):
            results.tokens[start + place] = slots.tokens[slot, place, beam]
            results.logs[start + place] = slots.logs[slot, place, beam]
            if len(slots.attention):
                parent = slots.parents[slot, place, beam]
                num_words = sentences.starts[sentence + 1] - sentences.starts[sentence]
                line = results.attention_starts[sentence] + (rank * limit + place) * num_words
                for token in range(num_words):
                    results.attention[line + token] = slots.attention[slot, place, parent, token]
            beam = slots.parents[slot, place, beam]
