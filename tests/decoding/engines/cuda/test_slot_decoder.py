"""Sentences at positions of their own get the scores that the plain model gives them."""

from dataclasses import replace

import pytest
import torch

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.cuda.slot_decoder import ROUND, SlotDecoder, can_take_slots
from dragoman.kernels.cuda_search.beam_slots import Slots
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions

VOCABULARY = Vocabulary(40, 40, 2, 0)
SMALL = TransformerOptions(
    num_encoder_layers=1, num_decoder_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2
)
KINDS = {
    "paper": {},
    "pre-norm": {"norm_position": "pre"},
    "rms": {"norm": "rms"},
    "learned": {"positions": "learned", "max_positions": 9},
    "marian": {"positions": "marian"},
    "index": {"positions": "index"},
    "none": {"positions": "none"},
    "swiglu": {"feed_forward": "swiglu"},
    "biases": {"attention_bias": True, "output_bias": True},
    "widths": {"key_dim": 6, "value_dim": 10},
    "untied": {"tied_embeddings": "none"},
}
CPU = torch.device("cpu")


def make_model(**changes):
    torch.manual_seed(5)
    model = build_model(replace(SMALL, **changes), VOCABULARY).eval()
    for each in model.parameters():  # biases and norms too, so that none is forgotten unseen
        if each.dim() == 1:
            torch.nn.init.normal_(each, mean=float(each.detach().mean()), std=0.3)
    return model


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_each_slot_says_what_the_plain_model_says(kind):
    model = make_model(**KINDS[kind])
    assert can_take_slots(replace(SMALL, **KINDS[kind]))
    engine = RebuiltTransformer(model)
    decoder = SlotDecoder(model, engine)
    sources = [[5, 6, 7, 8, 0], [9, 0], [4, 3, 9, 0]]
    words, pitch = [[11, 12, 13, 14], [21], [31, 32]], 9
    slots = Slots.make(3, 1, pitch, VOCABULARY.pad_id, CPU)
    past = torch.zeros(decoder.num_layers, 3 * pitch, decoder.memory_width)
    memory = torch.zeros(decoder.num_layers, 30, decoder.memory_width)
    slots.sources[:] = torch.tensor([[0, 10, 20], [5, 2, 4]])
    for start, source in zip((0, 10, 20), sources, strict=True):
        hidden = engine.encode(pad_sequences(flatten([source]), 2)).hidden[0]
        decoder.project(hidden, memory[:, start : start + len(source)])
    # One slot begins late and one ends early, so that they stand at different positions.
    late = [0, 3, 1]
    for time in range(5):
        for slot, (first, said) in enumerate(zip(late, words, strict=True)):
            position = min(max(time - first, 0), len(said))
            slots.positions[slot] = position
            slots.newest[slot] = said[position - 1] if position else VOCABULARY.pad_id
        scores = decoder.step(slots, past, memory, decoder.place_vectors(pitch))
    assert scores.shape == (3, ROUND)
    for row, source, said, first in zip(scores, sources, words, late, strict=True):
        state = model.start(model.encode(pad_sequences(flatten([source]), 2)), pitch)
        for word in [VOCABULARY.pad_id, *said][: 5 - first]:
            hidden, state = model.step(torch.tensor([[word]]), state)
        expected = model.output(hidden)[0, 0]
        is_word = torch.arange(40) != VOCABULARY.pad_id
        torch.testing.assert_close(row[:40][is_word], expected[is_word], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": "rotary"},
        {"positions": "alibi"},
        {"positions": "normalised"},
        {"norm": "batch"},
        {"num_experts": 4},
        {"encoder_attention": "restricted"},
    ],
)
def test_some_models_cannot_take_slots(changes):
    assert not can_take_slots(replace(SMALL, **changes))
