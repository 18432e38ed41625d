"""Beam search with a Transformer on a CPU: slots that refill themselves, on one core each.

What `dragoman.decoding.search.beam` does with any model, here as one compiled function. A slot
holds one sentence and its hypotheses; as soon as it is done, the next sentence of a queue, which
all cores share, takes its place.
"""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import find_words
from dragoman.kernels.cpu_search.compiler.instructions import (
    borrow,
    compiled,
    compiled_entry,
    keep,
    take_numbers,
)
from dragoman.kernels.cpu_search.constraints.required_terms import (
    ask,
    extend_with_terms,
    most_asked,
)
from dragoman.kernels.cpu_search.constraints.samples import (
    draw_words,
    extend_by_samples,
    take_chance,
)
from dragoman.kernels.cpu_search.constraints.shortlist_vocabulary import (
    choose_among,
    find_chosen,
    make_choices,
)
from dragoman.kernels.cpu_search.kv_pool import Places, follow, leave, take_place
from dragoman.kernels.cpu_search.slots import (
    FORBIDDEN_PLACE,
    begin,
    block_repetition,
    extend,
    force,
    is_done,
    make_slots,
    write_down,
)
from dragoman.kernels.cpu_search.task import IS_STOPPED, LONGEST_PHRASE, NEXT
from dragoman.kernels.cpu_search.transformer_steps import (
    Pool,
    Rows,
    encode,
    read_word,
    remember_sources,
    step,
)

# Source words that are read together: more do not make products faster, and take room.
_READ_TOGETHER = 256
# Sentences begin when so large a part of the slots is empty: reading several at once is faster.
_REFILLED_PART = 6


class Step(NamedTuple):
    """What one step of all hypotheses needs: where each row looks, and what is found for it."""

    rows: Rows
    states: np.ndarray
    forced: np.ndarray
    blocked: np.ndarray
    asked: np.ndarray
    places: np.ndarray
    chance: np.ndarray
    is_first: np.ndarray
    best: np.ndarray
    words: np.ndarray
    asked_scores: np.ndarray
    attention: np.ndarray


@compiled
def make_pool(num_places, decoder, shape) -> tuple[Pool, Places]:
    """Make room for keys and values."""
    num_layers, num_heads = len(decoder.norms), shape.num_heads
    pool = Pool(
        np.empty((num_layers, num_heads, num_places, shape.key_dim), shape.cached.dtype),
        np.empty((num_layers, num_heads, num_places, shape.value_dim), shape.cached.dtype),
        np.empty((num_layers, num_places * shape.is_recurrent, decoder.norms.shape[3]), np.float32),
    )
    places = Places(
        np.arange(num_places)[::-1].astype(np.uint32),  # the first are taken first
        np.zeros(num_places, np.int64),
        np.array([num_places, 0]),
    )
    return pool, places


@compiled
def make_step(slots, rules, width, num_asked, num_chances) -> Step:
    """Make room for one step of all hypotheses."""
    count = len(slots.own)
    rows = Rows(
        slots.own, np.empty(count, np.int64), np.empty(count, np.int64),
        slots.source, np.empty(count, np.int64), np.empty(count, np.int64),
    )  # fmt: skip
    return Step(
        rows,
        np.zeros((count, width), np.float32),
        np.empty(count, np.int64),
        np.empty((count, LONGEST_PHRASE if rules.is_unrepeated else 0), np.int64),
        np.empty((count, num_asked), np.int64),
        np.empty(count, np.int64),
        np.empty((count, num_chances), np.float32),
        np.empty(count, np.bool_),
        np.empty((count, rules.num_words), np.float32),
        np.empty((count, rules.num_words), np.int64),
        np.empty((count, num_asked), np.float32),
        np.zeros((count, slots.source.shape[1]) if rules.is_aligned else (1, 0), np.float32),
    )


@compiled
def refill(
    free_slots, first, past, model, sentences, rules, slots, places, pool, choices, team
) -> None:
    """Let sentences take free slots, and read them."""
    starts, shape = sentences.starts, model.shape
    sentence = first
    while sentence < past:
        behind = sentence + 1
        while behind < past and starts[behind + 1] - starts[sentence] <= _READ_TOGETHER:
            behind += 1
        count = starts[behind] - starts[sentence]
        states = np.empty((count, model.positions.shape[1]), np.float32)
        own = np.empty(count, np.uint32)
        row = 0
        for each in range(sentence, behind):
            slot, start = free_slots[each - first], starts[each]
            begin(slot, each, slots, rules)
            for place in range(starts[each + 1] - start):
                word = sentences.ids[start + place]
                read_word(
                    model.source_words, word, shape.word_scale, model.positions[place], states[row]
                )
                own[row] = slots.source[slot, place] = take_place(places)
                row += 1
            chosen = sentences.choices[
                sentences.choice_starts[each] : sentences.choice_starts[each + 1]
            ]
            choose_among(slot, chosen, model.output, choices)
        lengths = np.diff(starts[sentence : behind + 1])
        encode(states, lengths, model.encoder, shape, team)
        remember_sources(states, own, model.decoder, shape, pool, team)
        sentence = behind


@compiled
def line_up(model, slots, sentences, rules, places, terms, samples, step_room) -> int:
    """Make a row of each living hypothesis: its newest word, and a place for that."""
    rows, row = step_room.rows, 0
    for slot in range(len(slots.sentences)):
        sentence, length = slots.sentences[slot], slots.lengths[slot]
        if sentence < 0:
            continue
        forced = force(slot, slots, sentences, rules)
        for beam in range(slots.counts[slot]):
            owner = slot * rules.num_beams + beam
            slots.own[owner, length] = take_place(places)
            rows.owners[row], rows.own_counts[row] = owner, length + 1
            rows.sentences[row] = slot
            rows.source_counts[row] = sentences.starts[sentence + 1] - sentences.starts[sentence]
            read_word(
                model.target_words, slots.newest[slot, beam], model.shape.word_scale,
                model.positions[length], step_room.states[row],
            )  # fmt: skip
            step_room.forced[row], step_room.is_first[row] = forced, length == 0
            step_room.places[row] = slots.progress[slot, beam, FORBIDDEN_PLACE]
            if rules.is_aligned:
                step_room.attention[row] = 0
            if terms is not None:
                ask(sentence, terms, step_room.asked[row])
            if samples is not None:
                take_chance(slot, beam, slots, samples, step_room.chance[row])
            if rules.is_unrepeated:
                block_repetition(slot, beam, slots, sentences, step_room.blocked[row])
            row += 1
    return row


@compiled
def find_next(count, model, slots, rules, choices, forbidden, samples, step_room, team) -> None:
    """Find the best next words of all hypotheses, or draw them."""
    (
        _, states, forced, blocked, asked, places, chance, is_first, best, words, asked_scores, _
    ) = step_room  # fmt: skip
    if samples is not None:
        draw_words(
            states, count, model.output, rules.is_banned, forced, blocked, forbidden, places,
            samples, chance, is_first, best, words,
        )  # fmt: skip
        return
    if choices.words.shape[1] == 0:
        find_words(
            states, count, model.output.panels, model.output.outputs, rules.is_banned, forced,
            blocked, asked, forbidden, places, rules.is_normalised, best, words, asked_scores,
            team,
        )  # fmt: skip
        return
    row = 0
    for slot in range(len(slots.sentences)):
        if slots.sentences[slot] >= 0:
            past = row + slots.counts[slot]
            find_chosen(
                slot, states[row:past], past - row, choices, forced[row:past], forbidden,
                rules.is_normalised, best[row:past], words[row:past], team,
            )  # fmt: skip
            row = past


@compiled
def advance(slots, sentences, rules, places, step_room, results, forbidden, terms, samples) -> None:
    """Extend the hypotheses of all slots by the tokens that were found; empty finished slots."""
    row = 0
    for slot in range(len(slots.sentences)):
        if slots.sentences[slot] < 0:
            continue
        old_count, length = slots.counts[slot], slots.lengths[slot]
        for beam in range(old_count * rules.is_aligned):
            slots.attention[slot, length, beam] = step_room.attention[row + beam]
        if terms is not None:
            extend_with_terms(
                slot, row, step_room.forced, step_room.best, step_room.words,
                step_room.asked_scores, slots, sentences, rules, terms,
            )  # fmt: skip
        elif samples is not None:
            extend_by_samples(slot, row, step_room.best, step_room.words, slots, rules)
        else:
            extend(slot, row, step_room.best, step_room.words, slots, rules)
        follow_forbidden(slot, slots, forbidden, FORBIDDEN_PLACE)
        row += old_count
        if is_done(slot, slots, sentences, rules):
            write_down(slot, slots, sentences, results)
            leave(slot, old_count, slots, sentences, rules.num_beams, places)
        else:
            follow(slot, old_count, slots, rules.num_beams, places)


@compiled_entry
def search(model, sentences, rules, queue, size, results, team, forbidden, terms, samples) -> None:
    """Translate sentences of the queue until there are no more.

    Parameters
    ----------
    model : Model
        The model.
    sentences : Sentences
        What is to be translated, the longest first.
    rules : Rules
        How.
    queue : ndarray
        What all cores share: which sentence is next, and whether to stop.
    size : Size
        How many sentences are under way, with how many places, and on how many cores.
    results : Results
        Where translations are written.
    team : Team
        Who helps; only one core may search then.
    forbidden : ForbiddenTable
        What must not be written.
    terms : Terms | None
        What must appear in translations; None: nothing must.
    samples : Samples | None
        How words are drawn at random; None: the best translations are searched for.

    Notes
    -----
    It is compiled apart with terms and with samples, when these are first demanded, so that those
    who need neither do not wait for what they do not need.
    """
    model, sentences, rules = borrow(model), borrow(sentences), borrow(rules)
    results, forbidden = borrow(results), borrow(forbidden)
    num_slots, num_places, num_cores = size
    num_sentences, longest = len(sentences.limits), np.diff(sentences.starts).max()
    capacity, most_words = sentences.limits.max(), np.diff(sentences.choice_starts).max()
    num_asked = num_chances = 0
    if terms is not None:
        num_asked = most_asked(terms)
    if samples is not None:
        num_chances = rules.num_words
    own_slots = make_slots(num_slots, capacity, longest, rules)
    own_pool = make_pool(num_places, model.decoder, model.shape)
    own_choices = make_choices(num_slots, most_words, model.output)
    own_step = make_step(own_slots, rules, model.positions.shape[1], num_asked, num_chances)
    slots, choices, step_room = borrow(own_slots), borrow(own_choices), borrow(own_step)
    pool, places = borrow(own_pool)
    is_over = False
    while not queue[IS_STOPPED]:
        empty = np.flatnonzero(slots.sentences < 0)
        if not is_over and len(empty) >= max(1, num_slots // _REFILLED_PART):
            left = max(0, num_sentences - queue[NEXT])
            wanted = max(1, min(len(empty), -(-left // num_cores)))
            first = take_numbers(queue.ctypes.data, wanted)
            past = min(first + wanted, num_sentences)
            is_over = past == num_sentences or first >= num_sentences
            if first < past:
                refill(
                    empty, first, past, model, sentences, rules, slots, places, pool, choices, team
                )
        count = line_up(model, slots, sentences, rules, places, terms, samples, step_room)
        if count == 0 and is_over:
            break
        step(
            step_room.states, count, step_room.rows, model.decoder, model.shape, pool,
            step_room.attention, team,
        )  # fmt: skip
        find_next(count, model, slots, rules, choices, forbidden, samples, step_room, team)
        advance(slots, sentences, rules, places, step_room, results, forbidden, terms, samples)
    keep((own_slots, own_pool, own_choices, own_step))


@compiled
def follow_forbidden(slot, slots, forbidden, column) -> None:
    """Advance the automaton of forbidden phrases by the newest token of each hypothesis."""
    if len(forbidden.may_begin) == 0:
        return
    for beam in range(slots.counts[slot]):
        word, place = slots.newest[slot, beam], slots.progress[slot, beam, column]
        key = place * forbidden.defaults.shape[1] + word
        index = np.searchsorted(forbidden.keys, key)
        if index < len(forbidden.keys) and forbidden.keys[index] == key:
            slots.progress[slot, beam, column] = forbidden.targets[index]
        else:
            slots.progress[slot, beam, column] = forbidden.defaults[
                forbidden.may_begin[place], word
            ]
