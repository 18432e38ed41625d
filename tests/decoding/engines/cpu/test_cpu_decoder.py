"""Compiled functions, asked word by word, say what the plain model says, whatever is demanded."""

import numpy as np
import pytest
import torch
from tests.decoding.engines.cpu.test_cpu_engine import (
    COMPILED,
    assert_same,
    find,
    needs_compiler,
    some_sources,
)

from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.engines.cpu import cpu_decoder
from dragoman.decoding.engines.cpu.cpu_decoder import Cache, CpuDecoder
from dragoman.decoding.engines.cpu.cpu_engine import CpuEngine
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.errors import DataError
from dragoman.weights import load_model, vocabulary_of

pytestmark = needs_compiler


def load(folder, precision="float32"):
    return CpuDecoder(CpuEngine.load(folder, precision, searches=False))


def padded(folder, lengths=(3, 9, 5)):
    return pad_sequences(flatten(some_sources(folder, lengths)), folder.vocabularies.pad_id)


@pytest.mark.parametrize("kind", COMPILED)
def test_every_step_says_what_the_plain_model_says(make_folder, kind):
    folder = make_folder(**COMPILED[kind])
    both = (load_model(folder), load(folder))
    source, generator = padded(folder), torch.Generator().manual_seed(3)
    with torch.inference_mode():
        states = [each.start(each.encode(source), 12) for each in both]
        tokens = torch.full((3, 1), folder.vocabularies.pad_id)
        for length in range(6):
            said = [each.step(tokens, state) for each, state in zip(both, states, strict=True)]
            scores = [each.output(here) for each, (here, _) in zip(both, said, strict=True)]
            torch.testing.assert_close(scores[1], scores[0], rtol=1e-4, atol=1e-4)
            states = [state for _, state in said]
            if length == 2:  # a sentence leaves, and hypotheses multiply
                states = [each.keep(torch.tensor([0, 2])) for each in states]
            beams = torch.randint(0, states[1].num_beams, (2 if length > 1 else 3, 4))
            states = [each.reorder(beams) for each in states]
            tokens = torch.randint(3, 40, beams.shape, generator=generator)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("room", [1, 16])
def test_the_general_search_finds_what_the_compiled_one_finds(
    make_folder,
    precision,
    beams,
    room,
    monkeypatch,
):
    make = Cache.make
    monkeypatch.setattr(  # the cache grows, and places that nobody names any more are used again
        cpu_decoder.Cache, "make", lambda model, count: make(model, count if room > 1 else 40)
    )
    folder = make_folder()
    engine, sources = CpuEngine.load(folder, precision), some_sources(folder)
    options = SearchOptions(beam_size=beams, max_extra_tokens=4)
    vocabulary = vocabulary_of(folder.vocabularies)
    source = pad_sequences(flatten(sources), vocabulary.pad_id)
    found = search(CpuDecoder(engine), source, options, vocabulary, num_best=beams)
    assert_same(found, find(engine, sources, beams=beams, best=beams))


def test_company_changes_no_bit(make_folder, precision):
    folder = make_folder()
    decoder, lengths = load(folder, precision), (3, 7, 12, 15, 16, 19, 27, 40)
    pad_id = folder.vocabularies.pad_id

    def read(sources):
        source = pad_sequences(flatten(sources), pad_id)
        tokens = torch.full((len(sources), 1), pad_id)
        hidden, _ = decoder.step(tokens, decoder.start(decoder.encode(source), 4))
        return hidden, decoder.output(hidden)

    sources = some_sources(folder, lengths)
    together = read(sources)
    for place, each in enumerate(sources):
        for one, all_ in zip(read([each]), together, strict=True):
            assert torch.equal(one[0], all_[place])


def test_places_are_used_again():
    values, cells = np.zeros((1, 1, 4, 2)), np.zeros((1, 4, 3), np.float32)
    cache = Cache(np.zeros((1, 1, 4, 2)), values, cells, np.ones(4, np.bool_))
    assert cache.take(3).tolist() == [0, 1, 2]
    assert cache.is_free.tolist() == [False] * 3 + [True]
    cache.keys[:, :, 2] = 7
    grown = cache.grown(6)
    assert grown.keys.shape == (1, 1, 10, 2)
    assert grown.cells.shape == (1, 10, 3)
    assert (grown.keys[:, :, 2] == 7).all()
    assert grown.take(2).tolist() == [3, 4]


def test_tokens_that_are_in_no_vocabulary_are_refused(make_folder):
    folder = make_folder()
    decoder, source = load(folder), padded(folder)
    state = decoder.start(decoder.encode(source), 4)
    for word in (-1, len(folder.vocabularies.target)):
        with pytest.raises(ValueError, match="is not among the"):
            decoder.step(torch.full((3, 1), word), state)
    source.ids[0, 0] = len(folder.vocabularies.source)
    with pytest.raises(ValueError, match="is not among the"):
        decoder.start(decoder.encode(source), 4)


def test_learned_positions_end(make_folder):
    folder = make_folder(positions="learned", max_positions=12)
    decoder = load(folder)
    with pytest.raises(DataError, match="13 subwords is longer than the 12 learned positions"):
        decoder.start(decoder.encode(padded(folder, [3])), 13)
