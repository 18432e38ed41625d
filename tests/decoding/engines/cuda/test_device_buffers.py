"""Device buffers take sentences region by region, and forget them between searches."""

from dataclasses import replace

import pytest
import torch

from dragoman.decoding.engines.cuda.device_buffers import (
    BufferSize,
    Chunk,
    DeviceBuffers,
    DeviceRequest,
)
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.cuda.slot_decoder import SlotDecoder
from dragoman.kernels.cuda_search.beam_slots import TAIL
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions

VOCABULARY = Vocabulary(40, 40, 2, 0)
SMALL = TransformerOptions(
    num_encoder_layers=1, num_decoder_layers=1, model_dim=16, feed_forward_dim=24, num_heads=2
)
SIZE = BufferSize(
    num_slots=2, num_beams=3, pitch=16, num_regions=2, region_sentences=3, region_places=48
)
ASKED = DeviceRequest(num_best=2, alpha=0.6, banned_ids=(1,))


def make_buffers(**changes):
    torch.manual_seed(5)
    model = build_model(replace(SMALL, **changes), VOCABULARY).eval()
    engine = RebuiltTransformer(model)
    with torch.inference_mode():
        made = DeviceBuffers(
            engine, SlotDecoder(model, engine), SIZE, VOCABULARY, torch.device("cpu")
        )
        made.begin(ASKED)
    return made


@pytest.fixture
def buffers():
    return make_buffers()


def make_chunk(*sources, prefixes=None):
    return Chunk(
        indices=range(len(sources)),
        sources=sources,
        limits=[len(each) + 4 for each in sources],
        prefixes=prefixes or [()] * len(sources),
    )


@torch.inference_mode()
def run(buffers, num_sentences):
    for _ in range(40):
        buffers.step()
    return buffers.poll_finished().wait()[:num_sentences].all()


@torch.inference_mode()
def test_sentences_find_slots_and_end(buffers):
    buffers.add(1, make_chunk([5, 6, 0], [7, 0], [8, 9, 10, 0]))
    assert buffers.slots.sentences.tolist() == [3, 4]  # of the second region; one waits
    assert buffers.slots.sources.tolist() == [[48, 56], [3, 2]]
    assert not buffers.poll_finished().wait().any()
    buffers.add(0, make_chunk([5, 6, 0]))
    assert buffers.sentences.ends[TAIL] == 4
    assert run(buffers, 0)
    assert buffers.poll_finished().wait().tolist() == [1, 0, 0, 1, 1, 1]
    finished, history = buffers.fetch(1, 3, 2)
    alone, past = buffers.fetch(0, 1, 2)
    assert finished.scores.shape == (3, 2)
    assert history.words.shape == (3, 16, 3)
    assert (finished.scores[:, 0] >= finished.scores[:, 1]).all()
    torch.testing.assert_close(alone.scores[0], finished.scores[0])
    length = int(alone.lengths.max())
    assert torch.equal(past.words[0, :length], history.words[0, :length])


@torch.inference_mode()
def test_what_never_comes_and_what_is_not_asked(buffers):
    assert buffers.rules.standing[:5].tolist() == [0, 1, 2, 0, 0]
    assert (buffers.rules.standing[40:] == 2).all()
    assert buffers.rules.penalties.tolist() == pytest.approx(
        [((5 + length) / 6) ** 0.6 for length in range(17)]
    )
    buffers.add(0, make_chunk([5, 0]))
    assert buffers.sentences.scores[0].tolist() == [-torch.inf, -torch.inf, torch.inf]
    buffers.begin(DeviceRequest(num_best=3, alpha=0.0, banned_ids=()))
    assert buffers.slots.sentences.tolist() == [-1, -1]
    assert buffers.rules.standing[:3].tolist() == [0, 0, 2]
    assert (buffers.rules.penalties == 1).all()
    buffers.add(0, make_chunk([5, 0]))
    assert buffers.sentences.scores[0].tolist() == [-torch.inf] * 3


@torch.inference_mode()
def test_words_that_must_come(buffers):
    buffers.add(0, make_chunk([5, 6, 0], [7, 0], prefixes=[(11, 12), ()]))
    assert run(buffers, 2)
    finished, history = buffers.fetch(0, 2, 2)
    words = history.words[0]
    assert words[0, 0] == 11
    assert words[1, 0] == 12
    assert (finished.lengths[0] >= 2).all()


@torch.inference_mode()
def test_no_more_positions_are_asked_for_than_were_learnt():
    buffers = make_buffers(positions="learned", max_positions=11)
    source = [*range(3, 13), 0]
    buffers.add(0, replace(make_chunk(source), limits=[11]))
    assert run(buffers, 1)
    assert buffers.fetch(0, 1, 1)[0].lengths.max() <= 10


@torch.inference_mode()
def test_uploads_hold_everything(buffers):
    upload = buffers._pack_upload(1, make_chunk([5, 6, 0], [7, 0]), 3, 8)
    assert upload[0] == 2
    assert upload[1:13].view(4, 3).tolist() == [[48, 56, 64], [3, 2, 1], [7, 6, 0], [0, 0, 0]]
    assert upload[13:16].tolist() == [3, 4, 5]
    ids = upload[16:].view(3, 8)
    assert ids[0].tolist() == [5, 6, 0, 2, 2, 2, 2, 2]
    assert (ids[2] == 2).all()
