"""Idle slots take the sentences of the queue, each once, in order."""

import pytest
import torch

from dragoman.kernels.cuda_search.beam_slots import HEAD, TAIL, Sentences, Slots, admit, plain_admit

PAD = 2


def make(num_slots, num_beams, queue, device):
    slots = Slots.make(num_slots, num_beams, 8, PAD, device)
    sentences = Sentences.make(6, num_beams, 8, 16, device)
    sentences.facts[:] = torch.arange(24, device=device).view(4, 6)
    sentences.queue[: len(queue)] = torch.tensor(queue, device=device)
    sentences.ends[TAIL] = len(queue)
    slots.positions.fill_(7)
    slots.newest.fill_(3)
    return slots, sentences


both = pytest.mark.parametrize("take", [admit, plain_admit])


@both
@pytest.mark.parametrize("num_beams", [1, 3])
def test_idle_slots_are_filled(num_beams, take, device):
    slots, sentences = make(5, num_beams, [4, 2, 5], device)
    slots.sentences[1] = 0  # is not idle
    take(slots, sentences, PAD)
    taken = slots.sentences.tolist()
    assert taken[1] == 0
    assert sorted(taken) == [-1, 0, 2, 4, 5]
    assert sentences.ends.tolist() == [3, 3]
    for slot, sentence in enumerate(taken):
        if sentence > 0:
            assert slots.positions[slot].tolist() == [0] * num_beams
            assert slots.newest[slot].tolist() == [PAD] * num_beams
            assert slots.alive[slot].tolist() == [0.0] + [-torch.inf] * (num_beams - 1)
            assert slots.sources[:, slot].tolist() == [sentence, 6 + sentence]
    assert slots.positions[1].tolist() == [7] * num_beams


@both
def test_what_does_not_fit_waits(take, device):
    slots, sentences = make(2, 2, [4, 2, 5], device)
    take(slots, sentences, PAD)
    assert sorted(slots.sentences.tolist()) == [2, 4]
    assert sentences.ends[HEAD] == 2
    take(slots, sentences, PAD)
    assert sentences.ends[HEAD] == 2
    slots.clear(PAD)
    assert slots.sentences.tolist() == [-1, -1]
    take(slots, sentences, PAD)
    assert sorted(slots.sentences.tolist()) == [-1, 5]
