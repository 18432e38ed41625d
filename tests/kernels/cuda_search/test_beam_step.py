"""The step of a search in one kernel is that of its plain twin."""

from dataclasses import replace

import pytest
import torch

from dragoman.kernels.cuda_search.beam_slots import (
    LIMITS,
    PREFIXES,
    TAIL,
    Rules,
    Sentences,
    Slots,
    plain_admit,
)
from dragoman.kernels.cuda_search.beam_step import advance, plain_advance
from dragoman.kernels.cuda_search.best_tokens import plain_best_words

PAD, EOS, SIZE, PITCH = 2, 0, 23, 12
CPU = torch.device("cpu")


def make_search(num_beams, num_best):
    """Begin with four sentences of different limits, two with words that must come."""
    slots = Slots.make(2, num_beams, PITCH, PAD, CPU)
    sentences = Sentences.make(4, num_beams, PITCH, 8, CPU)
    sentences.facts[LIMITS] = torch.tensor([9, 3, 7, 12])
    sentences.facts[PREFIXES] = torch.tensor([0, 1, 0, 2])
    sentences.said[PITCH, 0], sentences.said[3 * PITCH : 3 * PITCH + 2, 0] = 5, 6
    sentences.scores[:] = torch.inf
    sentences.scores[:, :num_best] = -torch.inf
    sentences.queue[:4] = torch.tensor([2, 0, 3, 1])
    sentences.ends[TAIL] = 4
    standing = torch.zeros(SIZE, dtype=torch.uint8)
    standing[1], standing[PAD] = 1, 2
    penalties = ((5 + torch.arange(PITCH + 1)) / 6) ** 0.6
    plain_admit(slots, sentences, PAD)
    return slots, sentences, Rules(penalties, standing, EOS, PAD)


def copy(search, device):
    slots, sentences, rules = search
    moved = (
        replace(each, **{
            name: value.to(device, copy=True)
            for name, value in vars(each).items() if torch.is_tensor(value)
        })
        for each in (slots, sentences)
    )  # fmt: skip
    return (*moved, rules._replace(penalties=rules.penalties.to(device),
                                   standing=rules.standing.to(device)))  # fmt: skip


def look_up(table, slots):
    at = slots.sentences.long().clamp(min=0)[:, None]
    return table[at, slots.positions.long(), slots.newest.long()].flatten(0, 1)


def run(search, table, num_beams, step):
    """Search to the end; what is probable depends on sentence, place and newest words alone."""
    slots, sentences, rules = search
    count = 2 * num_beams if num_beams > 1 else 1
    for _ in range(4 * PITCH):
        logits = look_up(table, slots)
        choice = plain_best_words(logits, rules.standing, count)
        step(choice, logits, slots, sentences, rules)
    return slots, sentences


@pytest.mark.parametrize(("num_beams", "num_best"), [(1, 1), (2, 2), (3, 1), (4, 3)])
def test_kernel_and_twin_search_alike(num_beams, num_best, device):
    table = torch.randn(4, PITCH, SIZE, SIZE) * 3
    search = make_search(num_beams, num_best)
    ours = run(copy(search, device), table.to(device), num_beams, advance)
    slots, sentences = run(search, table, num_beams, plain_advance)
    assert slots.sentences.tolist() == ours[0].sentences.tolist() == [-1, -1]
    assert sentences.ends.tolist() == ours[1].ends.tolist() == [4, 4]
    assert sentences.is_done.tolist() == ours[1].is_done.tolist() == [1] * 4
    order, our_order = (each.scores.argsort(dim=1) for each in (sentences, ours[1]))
    for name in ("scores", "logs", "lengths", "beams"):
        expected = getattr(sentences, name).gather(1, order)[:, :num_best]
        found = getattr(ours[1], name).gather(1, our_order)[:, :num_best].cpu()
        torch.testing.assert_close(found, expected)
    is_live = sentences.sums > -torch.inf
    for name in ("said", "parents", "sums"):
        found, expected = getattr(ours[1], name).cpu(), getattr(sentences, name)
        torch.testing.assert_close(found[is_live], expected[is_live])
    said = sentences.said.view(4, PITCH, num_beams)
    assert (said[1, 0] == 5).all() or num_beams > 1
    assert said[3, 0, 0] == said[3, 1, 0] == 6


def test_ancestors_lead_to_the_words_of_each_hypothesis(device):
    num_beams = 4
    slots, sentences, rules = search = copy(make_search(num_beams, 1), device)
    table = torch.randn(4, PITCH, SIZE, SIZE, device=device) * 0.3  # nothing ends soon
    table[:, :, :, EOS] = -20
    run_steps = 5
    for _ in range(run_steps):
        logits = look_up(table, slots)
        choice = plain_best_words(logits, rules.standing, 2 * num_beams)
        advance(choice, logits, *search)
    for slot, sentence in enumerate(slots.sentences.tolist()):
        steps = slice(sentence * PITCH, sentence * PITCH + run_steps)
        said, parents = sentences.said[steps].cpu(), sentences.parents[steps].cpu()
        for beam in range(num_beams):
            words, under = [], beam
            for step in range(run_steps - 1, -1, -1):
                words.append(int(said[step, under]))
                under = int(parents[step, under])
            row = (slot * num_beams + beam) * PITCH
            of = slots.ancestors[run_steps % 2, row : row + run_steps].tolist()
            # A word is read, hence written down, in the step after the one in which it was said.
            read = [int(said[step - 1, of[step]]) for step in range(1, run_steps)]
            assert [*read, int(slots.newest[slot, beam])] == words[::-1]
