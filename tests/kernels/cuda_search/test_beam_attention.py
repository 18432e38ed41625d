"""Attention along the ancestors of hypotheses equals attention to their words laid side by side."""

from dataclasses import replace

import pytest
import torch

from dragoman.kernels.cuda_search.beam_attention import (
    Heads,
    beam_attention,
    plain_beam_attention,
    plain_source_attention,
    source_attention,
)
from dragoman.kernels.cuda_search.beam_slots import Slots

PITCH = 40
CPU = torch.device("cpu")


def make_slots(positions, num_beams):
    slots = Slots.make(len(positions), num_beams, PITCH, 2, CPU)
    slots.positions[:] = torch.tensor(positions)[:, None]
    slots.ancestors.random_(0, num_beams)
    return slots


def to(slots, device):
    moved = {name: value.to(device) for name, value in vars(slots).items() if name != "pitch"}
    return replace(slots, **moved)


@pytest.mark.parametrize("num_beams", [1, 3, 4, 9])
@pytest.mark.parametrize("heads", [Heads(2, 8, 8, 0.35), Heads(3, 6, 10, 1.0)])
def test_kernel_attends_along_the_ancestors(num_beams, heads, device, close):
    slots = make_slots([0, 1, 18, PITCH - 1], num_beams)
    rows = len(slots.sentences) * num_beams
    joined = torch.randn(rows, 2 * heads.key_width + heads.value_width)
    past = torch.randn(rows * PITCH, heads.key_width + heads.value_width)
    expected_past, found_past = past.clone(), past.to(device, copy=True)
    expected = plain_beam_attention(joined, expected_past, slots, heads)
    found = beam_attention(joined.to(device), found_past, to(slots, device), heads)
    close(found, expected, 1e-6)
    assert torch.equal(found_past.cpu(), expected_past)
    assert not torch.equal(expected_past, past)


def test_the_plain_twin_spells_the_equation_out():
    heads, num_beams = Heads(2, 4, 6, 0.5), 3
    slots = make_slots([5, 12], num_beams)
    joined, past = torch.randn(6, 2 * 8 + 12), torch.randn(6 * PITCH, 8 + 12)
    found = plain_beam_attention(joined, past, slots, heads).view(2, num_beams, 2, 6)
    for slot, position in enumerate([5, 12]):
        for beam in range(num_beams):
            row = slot * num_beams + beam
            of = slots.ancestors[position % 2, row * PITCH : row * PITCH + position].long()
            places = (slot * num_beams + of) * PITCH + torch.arange(position)
            both = torch.cat([past[places], joined[row : row + 1, 8:]])
            for head in range(2):
                keys = both[:, head * 4 : head * 4 + 4]
                values = both[:, 8 + head * 6 : 8 + head * 6 + 6]
                weights = (keys @ joined[row, head * 4 : head * 4 + 4] * 0.5).softmax(0)
                torch.testing.assert_close(found[slot, beam, head], weights @ values)


@pytest.mark.parametrize("num_beams", [1, 3, 4, 9])
@pytest.mark.parametrize("heads", [Heads(2, 8, 8, 0.35), Heads(3, 6, 10, 1.0)])
def test_kernel_attends_to_the_source(num_beams, heads, device, close):
    slots = make_slots([1, 2, 3, 4], num_beams)
    slots.sources[:] = torch.tensor([[30, 0, 7, 100], [12, 0, 1, 37]])
    query = torch.randn(4 * num_beams, heads.key_width)
    memory = torch.randn(140, heads.key_width + heads.value_width)
    expected = plain_source_attention(query, memory, slots, heads)
    found = source_attention(query.to(device), memory.to(device), to(slots, device), heads)
    close(found, expected, 1e-6)
    assert not expected[num_beams : 2 * num_beams].any()  # an idle slot finds nothing
    shares = (query[0, : heads.key_dim] @ memory[30:42, : heads.key_dim].t() * heads.scale).softmax(
        0
    )
    values = memory[30:42, heads.key_width : heads.key_width + heads.value_dim]
    torch.testing.assert_close(expected[0, : heads.value_dim], shares @ values)
