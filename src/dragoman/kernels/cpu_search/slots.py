"""Sentences under way and their hypotheses: how these begin, go on and end.

Nothing of a hypothesis moves when another continues it: it has a list of places in a pool of keys
and values, and places that no list names any more are free.
"""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled
from dragoman.kernels.cpu_search.task import AT_START

TERM_STATE, TERMS_MET, FORBIDDEN_PLACE, SAMPLE = range(4)
"""What a hypothesis has read of required terms, which are there, what it has read of forbidden
words, and which sample it is."""
PROGRESS = 4
_END_SHARE, _END_MORE = 8, 5


class Slots(NamedTuple):
    """What is under way, one row a slot."""

    sentences: np.ndarray  # which sentence; −1: none
    lengths: np.ndarray  # words so far
    counts: np.ndarray  # living hypotheses
    alive: np.ndarray  # their log-probabilities
    newest: np.ndarray  # their newest words
    own: np.ndarray  # places of their words, one line for each hypothesis of all slots
    source: np.ndarray  # places of the source's words
    words: np.ndarray  # what each step added, [slots, steps, hypotheses]
    parents: np.ndarray  # and to which hypothesis
    logs: np.ndarray  # log-probabilities up to there
    finished: np.ndarray  # scores of the best that have ended, in falling order
    finished_logs: np.ndarray
    finished_lengths: np.ndarray
    finished_parents: np.ndarray
    progress: np.ndarray  # how far hypotheses are with what is demanded, see `TERM_STATE` and so on
    attention: np.ndarray  # what each gave the source's words, [slots, steps, hypotheses, words]


@compiled
def make_slots(num_slots, capacity, longest, rules) -> Slots:
    """Make slots with nothing in them."""
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
def begin(slot, sentence, slots, rules) -> None:
    """Let a sentence take a slot: one empty hypothesis."""
    slots.sentences[slot], slots.lengths[slot], slots.counts[slot] = sentence, 0, 1
    slots.alive[slot, 0], slots.newest[slot, 0] = 0, rules.start_id
    slots.finished[slot] = -np.inf
    slots.progress[slot, 0] = 0
    slots.progress[slot, 0, FORBIDDEN_PLACE] = AT_START


@compiled
def force(slot, slots, sentences, rules) -> int:
    """Say which word must come next: a prefix's, or the end at the largest length."""
    sentence, length = slots.sentences[slot], slots.lengths[slot]
    if length + 1 >= sentences.limits[sentence]:
        return rules.eos_id
    if length < sentences.prefixes.shape[1]:
        return sentences.prefixes[sentence, length]
    return -1


@compiled
def block_repetition(slot, beam, slots, sentences, blocked) -> None:
    """List the words with which a hypothesis would say a phrase for the third time in a row."""
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
        past[place] = slots.words[slot, place, beam]
        beam = slots.parents[slot, place, beam]
    for period in range(1, min(len(blocked), (length + 1) // 3) + 1):
        place = length - 2 * period + 1
        while place < length and past[place] == past[place - period]:
            place += 1
        if place == length:
            blocked[period - 1] = past[length - period]


@compiled
def length_penalty(length, alpha) -> float:
    """Compute what a log-probability is divided by: ((5 + length) / 6)^α."""
    return ((5.0 + length) / 6.0) ** alpha


@compiled
def find_place(score, best) -> int:
    """Say where a score belongs among the best."""
    place = len(best)
    while place > 0 and score > best[place - 1]:
        place -= 1
    return place


@compiled
def insert(score, word, best, words) -> None:
    """Put a word among the best, if it is one of them."""
    place = find_place(score, best)
    for other in range(len(best) - 1, place, -1):
        best[other], words[other] = best[other - 1], words[other - 1]
    if place < len(best):
        best[place], words[place] = score, word


@compiled
def finish(slot, total, parent, slots, rules) -> None:
    """Let a hypothesis that ends compete with those that have."""
    length, scores = slots.lengths[slot], slots.finished[slot]
    score = np.float32(total / length_penalty(length + 1, rules.alpha))
    place = find_place(score, scores)
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
def go_on(slot, living, word, parent, total, slots) -> None:
    """Let a hypothesis live on, extended by a word."""
    length = slots.lengths[slot]
    slots.words[slot, length, living] = word
    slots.parents[slot, length, living] = parent
    slots.logs[slot, length, living] = total


@compiled
def settle(slot, living, slots) -> None:
    """Replace the hypotheses of a slot by those that live on."""
    length = slots.lengths[slot]
    progress = slots.progress[slot].copy()
    for beam in range(living):
        slots.alive[slot, beam] = slots.logs[slot, length, beam]
        slots.newest[slot, beam] = slots.words[slot, length, beam]
        slots.progress[slot, beam] = progress[slots.parents[slot, length, beam]]
    slots.counts[slot] = living
    slots.lengths[slot] = length + 1


@compiled
def extend(slot, first_row, best, words, slots, rules) -> None:
    """Extend the hypotheses of a slot by a word, or end them.

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
            if total <= totals[-1]:  # and so are those of the words behind it
                break
            insert(total, beam * count + rank, totals, chosen)
    living = 0
    for index in range(count):
        if totals[index] == -np.inf:
            break
        parent = chosen[index] // count
        word = words[first_row + parent, chosen[index] % count]
        if word == rules.eos_id:
            finish(slot, totals[index], parent, slots, rules)
        elif living < rules.num_beams:
            go_on(slot, living, word, parent, totals[index], slots)
            living += 1
    settle(slot, living, slots)


@compiled
def is_done(slot, slots, sentences, rules) -> bool:
    """Say whether none of a slot's hypotheses can overtake the finished ones."""
    length, limit = slots.lengths[slot], sentences.limits[slots.sentences[slot]]
    if slots.counts[slot] == 0 or length >= limit:
        return True
    farthest = min(limit, length + length // _END_SHARE + _END_MORE)
    highest = slots.alive[slot, : slots.counts[slot]].max()
    bound = highest / length_penalty(farthest, rules.alpha)
    return slots.finished[slot, -1] >= bound


@compiled
def write_down(slot, slots, sentences, results) -> None:
    """Read the finished translations of a slot from their ends to their beginnings."""
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
            results.tokens[start + place] = slots.words[slot, place, beam]
            results.logs[start + place] = slots.logs[slot, place, beam]
            if len(slots.attention):
                parent = slots.parents[slot, place, beam]
                num_words = sentences.starts[sentence + 1] - sentences.starts[sentence]
                line = results.attention_starts[sentence] + (rank * limit + place) * num_words
                for word in range(num_words):
                    results.attention[line + word] = slots.attention[slot, place, parent, word]
            beam = slots.parents[slot, place, beam]
