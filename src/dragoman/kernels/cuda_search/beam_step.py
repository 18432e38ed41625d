"""One step of beam search for all slots at once, on the GPU."""

from typing import Any

import torch
from torch import Tensor

from dragoman.kernels import language
from dragoman.kernels.cuda_search.beam_slots import (
    LIMITS,
    PREFIXES,
    Rules,
    Sentences,
    Slots,
    plain_admit,
    take_next,
)
from dragoman.kernels.cuda_search.best_tokens import Choice
from dragoman.kernels.language import jit, next_power, tl
from dragoman.shapes import Float

# Tokens whose ancestors a program copies at once.
TILE = 32
END_SHARE, END_MORE = 8, 5


def farthest_end(length: Any) -> Any:  # noqa: ANN401
    """Return the length up to which a living hypothesis may still overtake finished ones.

    Notes
    -----
    A search that waits for what could overtake at the largest length of all, at no cost a word,
    does an eighth to a third more steps for a translation that hardly ever comes. With length
    penalties above 1, which favour ever longer translations, it may come.
    """
    return length + length // END_SHARE + END_MORE


def advance(
    choice: Choice,
    logits: Float[Tensor, "rows vocabulary"],
    slots: Slots,
    sentences: Sentences,
    rules: Rules,
) -> None:
    """Extend the hypotheses of every slot by one token.

    Parameters
    ----------
    choice : Choice
        The best words of each hypothesis: twice as many as hypotheses, or one for greedy search.
    logits : Float[Tensor, "rows vocabulary"]
        The scores of all words, for words that must come.
    slots : Slots
        The hypotheses; changed.
    sentences : Sentences
        What has been said and finished; changed.
    rules : Rules
        The rules of the search.

    Notes
    -----
    The search is that of `dragoman.decoding.search.beam`: of the best extensions those that end
    compete
    for a place among the finished, and the beam best of the others live on, until none of them can
    overtake by `farthest_end`. A slot whose sentence is done, and an idle one, take the next
    sentence of the queue.
    """
    if not language.uses_kernels(logits):
        plain_advance(choice, logits, slots, sentences, rules)
        return
    num_slots, num_beams = slots.newest.shape
    count = choice.words.size(1)
    _advance_kernel[(num_slots,)](
        choice.logs, choice.words, choice.normalisers, logits, rules.standing,
        slots.sentences, slots.positions, slots.newest, slots.alive, slots.sources,
        slots.ancestors, sentences.facts, sentences.is_done, sentences.scores, sentences.logs,
        sentences.lengths, sentences.beams, sentences.said, sentences.parents, sentences.sums,
        sentences.queue, sentences.ends, rules.penalties, logits.size(1), num_slots,
        len(sentences.is_done), slots.pitch, rules.eos_id, rules.pad_id, LIMITS=LIMITS,
        PREFIXES=PREFIXES, BEAMS=num_beams, BEAM_BLOCK=next_power(num_beams, 2), COUNT=count,
        CANDIDATES=next_power(num_beams * count, 2), TILE=TILE, END_SHARE=END_SHARE,
        END_MORE=END_MORE, num_warps=1,
    )  # fmt: skip


def plain_advance(
    choice: Choice,
    logits: Float[Tensor, "rows vocabulary"],
    slots: Slots,
    sentences: Sentences,
    rules: Rules,
) -> None:
    """Compute the same with PyTorch's operations, on a CPU."""
    busy = (slots.sentences >= 0).nonzero().flatten()
    if len(busy):
        at = slots.sentences[busy].long()
        position = slots.positions[busy, 0].long()
        logs, words = _heed_forced(choice, logits, slots, sentences, rules, busy)
        count, num_beams = words.size(2), words.size(1)
        totals, places = (logs + slots.alive[busy, :, None]).flatten(1).topk(count)
        words, parents = words.flatten(1).gather(1, places), (places // count).int()
        is_end = words == rules.eos_id
        ended = totals.where(is_end, -torch.inf)
        _compete(ended, parents, sentences, at, position, rules.penalties)
        alive, best = _best(totals.masked_fill(is_end, -torch.inf), num_beams)
        words, parents = words.gather(1, best), parents.gather(1, best)
        steps = at * slots.pitch + position
        sentences.said[steps], sentences.parents[steps] = words, parents
        sentences.sums[steps] = alive
        limits = sentences.facts[LIMITS, at].long()
        bound = alive.amax(1) / rules.penalties[limits.minimum(farthest_end(position + 1))]
        is_done = (sentences.scores[at].amin(1) >= bound) | (limits <= position + 1)
        sentences.is_done[at] = is_done.to(torch.int8)
        _descend(slots, busy, parents, position)
        slots.alive[busy], slots.newest[busy] = alive, words
        slots.positions[busy] += 1
        slots.sentences[busy[is_done]] = -1
        slots.positions[busy[is_done]] = 0
        slots.sources[:, busy[is_done]] = 0
    plain_admit(slots, sentences, rules.pad_id)


def _best(totals: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the best, repeating the first where there are too few."""
    alive, best = totals.topk(min(count, totals.size(1)))
    lacking = count - alive.size(1)
    alive = torch.cat([alive, alive.new_full((len(alive), lacking), -torch.inf)], 1)
    return alive, torch.cat([best, best.new_zeros(len(best), lacking)], 1)


def _heed_forced(
    choice: Choice,
    logits: Tensor,
    slots: Slots,
    sentences: Sentences,
    rules: Rules,
    busy: Tensor,
) -> tuple[Tensor, Tensor]:
    """Leave only the forced token, where there is one."""
    num_beams = slots.newest.size(1)
    at, position = slots.sentences[busy].long(), slots.positions[busy, 0].long()
    given = sentences.said[at * slots.pitch + position, 0]
    forced = given.where(position < sentences.facts[PREFIXES, at], -1)
    forced = forced.masked_fill(position + 1 == sentences.facts[LIMITS, at], rules.eos_id)
    logs, words = (each.unflatten(0, (-1, num_beams))[busy] for each in choice[:2])
    only = forced.clamp(min=0).long()
    scores = logits.unflatten(0, (-1, num_beams))[busy, :, only].float()
    scores = scores - choice.normalisers.unflatten(0, (-1, num_beams))[busy]
    scores = scores.masked_fill((rules.standing[only] > 0)[:, None], -torch.inf)
    is_forced = (forced >= 0)[:, None, None]
    logs = logs.masked_fill(is_forced, -torch.inf)
    logs[:, :, 0] = scores.where(is_forced[:, :, 0], logs[:, :, 0])
    return logs, words.where(~is_forced, only.int()[:, None, None])


def _compete(
    ended: Tensor,
    parents: Tensor,
    sentences: Sentences,
    at: Tensor,
    position: Tensor,
    penalties: Tensor,
) -> None:
    """Merge hypotheses that end into the finished ones, sorted: the worst first, +∞ last."""
    scores = torch.cat([sentences.scores[at], ended / penalties[position + 1][:, None]], 1)
    kept, best = scores.topk(sentences.scores.size(1))
    lengths = position[:, None].expand_as(ended).int()
    for field, new in (
        (sentences.logs, ended),
        (sentences.lengths, lengths),
        (sentences.beams, parents),
    ):
        field[at] = torch.cat([field[at], new], 1).gather(1, best).flip(1)
    sentences.scores[at] = kept.flip(1)


def _descend(slots: Slots, busy: Tensor, parents: Tensor, position: Tensor) -> None:
    """Copy the ancestors of each hypothesis from its parent."""
    num_beams, pitch = parents.size(1), slots.pitch
    for slot, line, length in zip(busy.tolist(), parents.long(), position.tolist(), strict=True):
        start = slot * num_beams * pitch
        old, new = (
            slots.ancestors[(length + late) % 2, start : start + num_beams * pitch].view(-1, pitch)
            for late in (0, 1)
        )
        new[:, :length] = old[line, :length]
        new[:, length] = line.to(torch.uint8)


@jit
def _weigh(
    slot, forced, logs, words, normalisers, logits, standing, alive, size, BEAMS: tl.constexpr,
    COUNT: tl.constexpr, CANDIDATES: tl.constexpr,
):  # fmt: skip
    """Load the candidates of one slot; where a token is forced, that token alone."""
    candidates = tl.arange(0, CANDIDATES)
    is_there = candidates < BEAMS * COUNT
    rows = slot * BEAMS + candidates // COUNT
    place = slot * BEAMS * COUNT + candidates
    log = tl.load(logs + place, mask=is_there, other=float("-inf"))
    word = tl.load(words + place, mask=is_there, other=0)
    is_forced = tl.zeros([CANDIDATES], tl.int32) + forced >= 0
    is_only = is_there & (candidates % COUNT == 0) & is_forced
    only = tl.maximum(forced, 0)
    score = tl.load(
        logits + rows.to(tl.int64) * size + only, mask=is_only, other=float("-inf")
    ).to(tl.float32)  # fmt: skip
    score -= tl.load(normalisers + rows, mask=is_only, other=0.0)
    score = tl.where(tl.load(standing + only) > 0, float("-inf"), score)
    log = tl.where(is_forced, score, log)
    word = tl.where(is_forced, forced, word)
    return log + tl.load(alive + rows, mask=is_there, other=float("-inf")), word


@jit
def _part(
    total, word, position, penalty, eos_id, scores, end_logs, end_lengths, end_beams, finals,
    BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr, COUNT: tl.constexpr, CANDIDATES: tl.constexpr,
):  # fmt: skip
    """Finish or continue the best candidates one after another; return the living and a bound."""
    candidates, beams = tl.arange(0, CANDIDATES), tl.arange(0, BEAM_BLOCK)
    is_beam = beams < BEAMS
    best_scores = tl.load(scores + finals, mask=is_beam, other=float("inf"))
    best_logs = tl.load(end_logs + finals, mask=is_beam, other=0.0)
    best_lengths = tl.load(end_lengths + finals, mask=is_beam, other=0)
    best_beams = tl.load(end_beams + finals, mask=is_beam, other=0)
    live_logs = tl.full([BEAM_BLOCK], float("-inf"), tl.float32)
    live_words = tl.zeros([BEAM_BLOCK], tl.int32)
    live_parents = tl.zeros([BEAM_BLOCK], tl.int32)
    num_alive = 0
    for _ in range(COUNT):
        top_log, top = tl.max(total, 0, return_indices=True)
        is_chosen = candidates == top
        chosen = tl.sum(tl.where(is_chosen, word, 0), 0)
        parent = top // COUNT
        total = tl.where(is_chosen, float("-inf"), total)
        is_end = chosen == eos_id
        end_score = top_log / penalty
        worst, worst_place = tl.min(best_scores, 0, return_indices=True)
        enters = beams == tl.where(is_end & (end_score > worst), worst_place, BEAM_BLOCK)
        best_scores = tl.where(enters, end_score, best_scores)
        best_logs = tl.where(enters, top_log, best_logs)
        best_lengths = tl.where(enters, position, best_lengths)
        best_beams = tl.where(enters, parent, best_beams)
        lives = is_beam & (beams == tl.where(is_end, BEAM_BLOCK, num_alive))
        live_logs = tl.where(lives, top_log, live_logs)
        live_words = tl.where(lives, chosen, live_words)
        live_parents = tl.where(lives, parent, live_parents)
        num_alive += tl.where(is_end, 0, 1)
    tl.store(scores + finals, best_scores, mask=is_beam)
    tl.store(end_logs + finals, best_logs, mask=is_beam)
    tl.store(end_lengths + finals, best_lengths, mask=is_beam)
    tl.store(end_beams + finals, best_beams, mask=is_beam)
    return live_logs, live_words, live_parents, tl.min(best_scores, 0)


@jit
def _inherit(
    slot, num_said, live_parents, ancestors, num_slots, pitch, BEAMS: tl.constexpr,
    BEAM_BLOCK: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Copy the ancestors of each hypothesis from its parent."""
    beams = tl.arange(0, BEAM_BLOCK)
    is_beam = beams < BEAMS
    newest = num_said - 1
    first = (slot * BEAMS).to(tl.int64)
    old = first + (newest % 2) * num_slots * BEAMS
    new = first + (num_said % 2) * num_slots * BEAMS
    for start in range(0, num_said, TILE):
        times = start + tl.arange(0, TILE)
        is_past = is_beam[:, None] & (times < newest)[None, :]
        theirs = ancestors + (old + live_parents)[:, None] * pitch + times[None, :]
        of = tl.load(theirs, mask=is_past, other=0).to(tl.int32)
        of = tl.where((times == newest)[None, :], live_parents[:, None], of)
        own = ancestors + (new + beams)[:, None] * pitch + times[None, :]
        is_said = is_beam[:, None] & (times < num_said)[None, :]
        tl.store(own, of.to(tl.uint8), mask=is_said)


@jit
def _advance_kernel(
    logs, words, normalisers, logits, standing, slot_sentences, positions, newest, alive, sources,
    ancestors, facts, is_done, scores, end_logs, end_lengths, end_beams, said, parents, sums, queue,
    ends, penalties, size, num_slots, num_sentences, pitch, eos_id, pad_id, LIMITS: tl.constexpr,
    PREFIXES: tl.constexpr, BEAMS: tl.constexpr, BEAM_BLOCK: tl.constexpr, COUNT: tl.constexpr,
    CANDIDATES: tl.constexpr, TILE: tl.constexpr, END_SHARE: tl.constexpr, END_MORE: tl.constexpr,
):  # fmt: skip
    """Extend the hypotheses of one slot."""
    slot = tl.program_id(0)
    sentence = tl.load(slot_sentences + slot)
    is_free = sentence < 0
    if sentence >= 0:
        position = tl.load(positions + slot * BEAMS)
        limit = tl.load(facts + LIMITS * num_sentences + sentence)
        num_given = tl.load(facts + PREFIXES * num_sentences + sentence)
        step = (sentence.to(tl.int64) * pitch + position) * BEAMS
        forced = tl.load(said + step, mask=position < num_given, other=-1)
        forced = tl.where(position + 1 == limit, eos_id, forced)
        total, word = _weigh(
            slot, forced, logs, words, normalisers, logits, standing, alive, size, BEAMS, COUNT,
            CANDIDATES,
        )  # fmt: skip
        beams = tl.arange(0, BEAM_BLOCK)
        is_beam = beams < BEAMS
        live_logs, live_words, live_parents, least = _part(
            total, word, position, tl.load(penalties + position + 1), eos_id, scores, end_logs,
            end_lengths, end_beams, sentence * BEAMS + beams, BEAMS, BEAM_BLOCK, COUNT, CANDIDATES,
        )  # fmt: skip
        tl.store(said + step + beams, live_words, mask=is_beam)
        tl.store(parents + step + beams, live_parents, mask=is_beam)
        tl.store(sums + step + beams, live_logs, mask=is_beam)
        # See `farthest_end`.
        farthest = tl.minimum(limit, position + 1 + (position + 1) // END_SHARE + END_MORE)
        bound = tl.max(live_logs, 0) / tl.load(penalties + farthest)
        is_free = (least >= bound) | (limit <= position + 1)
        tl.store(is_done + sentence, is_free.to(tl.int8))
        # Hypotheses that go on; if none does, the next sentence overwrites these.
        num_said = tl.where(is_free, 0, position + 1)
        later = tl.zeros([BEAM_BLOCK], tl.int32) + num_said
        goes_on = is_beam & (later > 0)
        tl.store(alive + slot * BEAMS + beams, live_logs, mask=goes_on)
        tl.store(newest + slot * BEAMS + beams, live_words, mask=goes_on)
        tl.store(positions + slot * BEAMS + beams, later, mask=goes_on)
        _inherit(slot, num_said, live_parents, ancestors, num_slots, pitch, BEAMS, BEAM_BLOCK, TILE)
    if is_free:
        take_next(
            slot, slot_sentences, positions, newest, alive, sources, facts, queue, ends,
            num_slots, num_sentences, pad_id, BEAMS, BEAM_BLOCK,
        )  # fmt: skip
