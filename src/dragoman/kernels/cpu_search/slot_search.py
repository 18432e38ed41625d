"""Beam search with a Transformer on a CPU: a batch of slots that refill themselves, one per core.

The compiled form of `dragoman.decoding.search.beam`. A slot holds one sentence and its hypotheses;
as soon as it is finished, it takes the next sentence of a queue that all cores share.
"""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.best_tokens import find_best_tokens
from dragoman.kernels.cpu_search.compiler.instructions import (
    atomic_add,
    borrow,
    compiled,
    compiled_entry,
    keep_alive,
)
from dragoman.kernels.cpu_search.constraints.required_terms import (
    count_most_term_tokens,
    extend_with_terms,
    list_term_tokens,
)
from dragoman.kernels.cpu_search.constraints.samples import (
    extend_by_samples,
    load_uniforms,
    sample_tokens,
)
from dragoman.kernels.cpu_search.constraints.shortlist_vocabulary import (
    find_best_in_shortlist,
    load_shortlist,
    make_slot_shortlists,
)
from dragoman.kernels.cpu_search.kv_pool import (
    FreeList,
    allocate_entry,
    release_slot,
    reorder_entries,
)
from dragoman.kernels.cpu_search.slots import (
    FORBIDDEN_STATE,
    extend_hypotheses,
    forced_token,
    is_done,
    list_repeated_tokens,
    make_slots,
    start_sentence,
    write_results,
)
from dragoman.kernels.cpu_search.task import IS_STOPPED, LONGEST_PHRASE, NEXT
from dragoman.kernels.cpu_search.transformer_steps import (
    Pool,
    Rows,
    decode_step,
    embed_token,
    encode,
    write_source_kv,
)

# Source tokens encoded together: more do not make products faster, and take memory.
_READ_TOGETHER = 256
# Refill when this fraction of slots is empty: encoding several sentences at once is faster.
_REFILLED_PART = 6


class Step(NamedTuple):
    """Buffers of one decoding step of all hypotheses: KV entries of each row, and results."""

    rows: Rows
    states: np.ndarray
    forced: np.ndarray
    blocked: np.ndarray
    requested: np.ndarray
    forbidden_states: np.ndarray
    uniforms: np.ndarray
    is_first: np.ndarray
    best: np.ndarray
    tokens: np.ndarray
    requested_scores: np.ndarray
    attention: np.ndarray


@compiled
def make_pool(num_places, decoder, shape) -> tuple[Pool, FreeList]:
    """Allocate the KV pool and its free list."""
    num_layers, num_heads = len(decoder.norms), shape.num_heads
    pool = Pool(
        np.empty((num_layers, num_heads, num_places, shape.key_dim), shape.cached.dtype),
        np.empty((num_layers, num_heads, num_places, shape.value_dim), shape.cached.dtype),
        np.empty((num_layers, num_places * shape.is_recurrent, decoder.norms.shape[3]), np.float32),
    )
    free_list = FreeList(
        np.arange(num_places)[::-1].astype(np.uint32),  # the first are allocated first
        np.zeros(num_places, np.int64),
        np.array([num_places, 0]),
    )
    return pool, free_list


@compiled
def make_step(slots, rules, width, num_requested, num_uniforms) -> Step:
    """Allocate the buffers of one step."""
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
        np.empty((count, num_requested), np.int64),
        np.empty(count, np.int64),
        np.empty((count, num_uniforms), np.float32),
        np.empty(count, np.bool_),
        np.empty((count, rules.num_candidates), np.float32),
        np.empty((count, rules.num_candidates), np.int64),
        np.empty((count, num_requested), np.float32),
        np.zeros((count, slots.source.shape[1]) if rules.is_aligned else (1, 0), np.float32),
    )


@compiled
def refill(
    free_slots, first, past, model, sentences, rules, slots, free_list, pool, shortlists, team
) -> None:
    """Assign sentences to free slots and encode them."""
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
            start_sentence(slot, each, slots, rules)
            for place in range(starts[each + 1] - start):
                token = sentences.ids[start + place]
                embed_token(
                    model.source_embedding,
                    token,
                    shape.embedding_scale,
                    model.positions[place],
                    states[row],
                )
                own[row] = slots.source[slot, place] = allocate_entry(free_list)
                row += 1
            chosen = sentences.shortlists[
                sentences.shortlist_starts[each] : sentences.shortlist_starts[each + 1]
            ]
            load_shortlist(slot, chosen, model.output, shortlists)
        lengths = np.diff(starts[sentence : behind + 1])
        encode(states, lengths, model.encoder, shape, team)
        write_source_kv(states, own, model.decoder, shape, pool, team)
        sentence = behind


@compiled
def fill_step_rows(model, slots, sentences, rules, free_list, terms, samples, step_room) -> int:
    """Make one row of each living hypothesis: its newest token and a KV entry for it."""
    rows, row = step_room.rows, 0
    for slot in range(len(slots.sentences)):
        sentence, length = slots.sentences[slot], slots.lengths[slot]
        if sentence < 0:
            continue
        forced = forced_token(slot, slots, sentences, rules)
        for beam in range(slots.counts[slot]):
            owner = slot * rules.num_beams + beam
            slots.own[owner, length] = allocate_entry(free_list)
            rows.owners[row], rows.own_counts[row] = owner, length + 1
            rows.sentences[row] = slot
            rows.source_counts[row] = sentences.starts[sentence + 1] - sentences.starts[sentence]
            embed_token(
                model.target_embedding, slots.newest[slot, beam], model.shape.embedding_scale,
                model.positions[length], step_room.states[row],
            )  # fmt: skip
            step_room.forced[row], step_room.is_first[row] = forced, length == 0
            step_room.forbidden_states[row] = slots.progress[slot, beam, FORBIDDEN_STATE]
            if rules.is_aligned:
                step_room.attention[row] = 0
            if terms is not None:
                list_term_tokens(sentence, terms, step_room.requested[row])
            if samples is not None:
                load_uniforms(slot, beam, slots, samples, step_room.uniforms[row])
            if rules.is_unrepeated:
                list_repeated_tokens(slot, beam, slots, sentences, step_room.blocked[row])
            row += 1
    return row


@compiled
def find_next_tokens(
    count, model, slots, rules, shortlists, forbidden, samples, step_room, team
) -> None:
    """Find the best next tokens of all hypotheses, or draw them."""
    (
        _, states, forced, blocked, requested, forbidden_states, uniforms, is_first, best, tokens,
        requested_scores, _,
    ) = step_room  # fmt: skip
    if samples is not None:
        sample_tokens(
            states, count, model.output, rules.is_banned, forced, blocked, forbidden,
            forbidden_states, samples, uniforms, is_first, best, tokens,
        )  # fmt: skip
        return
    if shortlists.tokens.shape[1] == 0:
        find_best_tokens(
            states, count, model.output.panels, model.output.outputs, rules.is_banned, forced,
            blocked, requested, forbidden, forbidden_states, rules.is_normalised, best, tokens,
            requested_scores, team,
        )  # fmt: skip
        return
    row = 0
    for slot in range(len(slots.sentences)):
        if slots.sentences[slot] >= 0:
            past = row + slots.counts[slot]
            find_best_in_shortlist(
                slot, states[row:past], past - row, shortlists, forced[row:past], forbidden,
                rules.is_normalised, best[row:past], tokens[row:past], team,
            )  # fmt: skip
            row = past


@compiled
def advance(
    slots, sentences, rules, free_list, step_room, results, forbidden, terms, samples
) -> None:
    """Extend the hypotheses of all slots by the tokens found; release finished slots."""
    row = 0
    for slot in range(len(slots.sentences)):
        if slots.sentences[slot] < 0:
            continue
        old_count, length = slots.counts[slot], slots.lengths[slot]
        for beam in range(old_count * rules.is_aligned):
            slots.attention[slot, length, beam] = step_room.attention[row + beam]
        if terms is not None:
            extend_with_terms(
                slot, row, step_room.forced, step_room.best, step_room.tokens,
                step_room.requested_scores, slots, sentences, rules, terms,
            )  # fmt: skip
        elif samples is not None:
            extend_by_samples(slot, row, step_room.best, step_room.tokens, slots, rules)
        else:
            extend_hypotheses(slot, row, step_room.best, step_room.tokens, slots, rules)
        advance_forbidden(slot, slots, forbidden, FORBIDDEN_STATE)
        row += old_count
        if is_done(slot, slots, sentences, rules):
            write_results(slot, slots, sentences, results)
            release_slot(slot, old_count, slots, sentences, rules.num_beams, free_list)
        else:
            reorder_entries(slot, old_count, slots, rules.num_beams, free_list)


@compiled_entry
def search(model, sentences, rules, queue, size, results, team, forbidden, terms, samples) -> None:
    """Translate sentences of the queue until there are none left.

    Parameters
    ----------
    model : Model
        The model.
    sentences : Sentences
        Source sentences, the longest first.
    rules : Rules
        Options of the search.
    queue : ndarray
        Counters that all cores share: the next sentence, and whether to stop.
    size : Size
        Slots of this core, entries of its KV pool, and number of cores.
    results : Results
        Output: translations.
    team : Team
        Helping cores; only one core may search then.
    forbidden : ForbiddenTable
        Forbidden phrases.
    terms : Terms | None
        Required terms.
    samples : Samples | None
        How to sample; None: beam search.

    Notes
    -----
    The variants with terms and with samples are compiled when first needed, so that plain searches
    do not wait for them.
    """
    model, sentences, rules = borrow(model), borrow(sentences), borrow(rules)
    results, forbidden = borrow(results), borrow(forbidden)
    num_slots, num_places, num_cores = size
    num_sentences, longest = len(sentences.limits), np.diff(sentences.starts).max()
    capacity, max_tokens = sentences.limits.max(), np.diff(sentences.shortlist_starts).max()
    num_requested = num_uniforms = 0
    if terms is not None:
        num_requested = count_most_term_tokens(terms)
    if samples is not None:
        num_uniforms = rules.num_candidates
    own_slots = make_slots(num_slots, capacity, longest, rules)
    own_pool = make_pool(num_places, model.decoder, model.shape)
    own_shortlists = make_slot_shortlists(num_slots, max_tokens, model.output)
    own_step = make_step(own_slots, rules, model.positions.shape[1], num_requested, num_uniforms)
    slots, shortlists, step_room = borrow(own_slots), borrow(own_shortlists), borrow(own_step)
    pool, free_list = borrow(own_pool)
    is_over = False
    while not queue[IS_STOPPED]:
        empty = np.flatnonzero(slots.sentences < 0)
        if not is_over and len(empty) >= max(1, num_slots // _REFILLED_PART):
            left = max(0, num_sentences - queue[NEXT])
            wanted = max(1, min(len(empty), -(-left // num_cores)))
            first = atomic_add(queue.ctypes.data, wanted)
            past = min(first + wanted, num_sentences)
            is_over = past == num_sentences or first >= num_sentences
            if first < past:
                refill(
                    empty, first, past, model, sentences, rules, slots, free_list, pool, shortlists,
                    team,
                )  # fmt: skip
        count = fill_step_rows(model, slots, sentences, rules, free_list, terms, samples, step_room)
        if count == 0 and is_over:
            break
        decode_step(
            step_room.states, count, step_room.rows, model.decoder, model.shape, pool,
            step_room.attention, team,
        )  # fmt: skip
        find_next_tokens(
            count, model, slots, rules, shortlists, forbidden, samples, step_room, team
        )
        advance(slots, sentences, rules, free_list, step_room, results, forbidden, terms, samples)
    keep_alive((own_slots, own_pool, own_shortlists, own_step))


@compiled
def advance_forbidden(slot, slots, forbidden, column) -> None:
    """Advance the automaton of forbidden phrases by the newest token of each hypothesis."""
    if len(forbidden.may_begin) == 0:
        return
    for beam in range(slots.counts[slot]):
        token, place = slots.newest[slot, beam], slots.progress[slot, beam, column]
        key = place * forbidden.defaults.shape[1] + token
        index = np.searchsorted(forbidden.keys, key)
        if index < len(forbidden.keys) and forbidden.keys[index] == key:
            slots.progress[slot, beam, column] = forbidden.targets[index]
        else:
            slots.progress[slot, beam, column] = forbidden.defaults[
                forbidden.may_begin[place], token
            ]
