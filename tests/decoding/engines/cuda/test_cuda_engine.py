"""The search on the device finds what the general search finds, whatever the company."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.engines.cuda import cuda_engine as graph_engine
from dragoman.decoding.engines.cuda.cuda_engine import (
    BatchLimits,
    CudaEngine,
    choose_size,
    least_pitch,
)
from dragoman.decoding.engines.cuda.device_buffers import DeviceBuffers
from dragoman.decoding.engines.search_engine import MOST_BEAMS, SearchRequest
from dragoman.decoding.options import SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.kernels import language
from dragoman.models.build import build_model
from dragoman.models.interface import SearchedModel, Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions

SIZE, PAD, EOS, UNK = 40, 2, 0, 1
VOCABULARY = Vocabulary(SIZE, SIZE, PAD, EOS)
SMALL = TransformerOptions(
    num_encoder_layers=1, num_decoder_layers=2, model_dim=16, feed_forward_dim=24, num_heads=2
)
CPU = torch.device("cpu")
REFILLING = {"chunk_sentences": 2, "small_slots": 1, "steps_between_looks": 2, "looks_in_flight": 2}


def make_model(vocabulary=VOCABULARY, **changes):
    """Make a model that makes clear choices, in double precision: rounding must not decide."""
    torch.manual_seed(5)
    model = build_model(replace(SMALL, **changes), vocabulary).eval()
    with torch.no_grad():
        model.output.words.mul_(3)
    return model.double()


def make_sources(count, seed=3, longest=12):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (count,), generator=generator).tolist()
    return [[*torch.randint(3, SIZE, (n,), generator=generator).tolist(), EOS] for n in lengths]


def find(engine, sources, options, num_best=1, prefixes=(), banned_ids=(), is_scored=True):
    given = prefixes or [()] * len(sources)
    limits = [
        len(source) + options.max_extra_tokens + len(prefix)
        for source, prefix in zip(sources, given, strict=True)
    ]
    request = SearchRequest(
        options.beam_size, num_best, options.length_penalty, banned_ids, is_scored
    )
    return engine.find(sources, limits, request, prefixes)


def search_plainly(model, sources, options, **rest):
    return search(model, pad_sequences(flatten(sources), PAD), options, VOCABULARY, **rest)


def assert_same(found, expected, error=1e-4):
    for ours, theirs in zip(found, expected, strict=True):
        assert [each.tokens for each in ours] == [each.tokens for each in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.score == pytest.approx(other.score, abs=error)
            assert one.log_probability == pytest.approx(other.log_probability, abs=error)
            assert one.token_log_probabilities == pytest.approx(
                other.token_log_probabilities, abs=error
            )


def test_it_satisfies_the_seam():
    assert isinstance(CudaEngine(make_model(), VOCABULARY, CPU), SearchedModel)


@pytest.mark.parametrize(
    ("beam_size", "changes"),
    [
        *((size, {}) for size in (1, 2, 3, 5, 8)),
        (4, {"norm_position": "pre", "output_bias": True}),
    ],
)
def test_it_finds_what_the_general_search_finds(beam_size, changes):
    model = make_model(**changes)
    sources = make_sources(13, seed=beam_size)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=4, length_penalty=1.0)
    engine = CudaEngine(model, VOCABULARY, CPU, BatchLimits(most_rows=4 * beam_size, **REFILLING))
    for num_best in {1, beam_size}:
        expected = search_plainly(model, sources, options, num_best=num_best, banned_ids=(UNK,))
        found = find(engine, sources, options, num_best, banned_ids=(UNK,))
        assert_same(found, expected)


@settings(max_examples=8)
@given(
    count=st.integers(1, 9),
    slots=st.integers(1, 5),
    chunk=st.integers(1, 4),
    steps=st.integers(1, 3),
    in_flight=st.integers(0, 3),
    small=st.sampled_from([0, 64]),
    beam_size=st.integers(1, 4),
    alpha=st.sampled_from([0.0, 0.6]),
    data=st.data(),
)
def test_company_order_and_extent_change_nothing(
    count, slots, chunk, steps, in_flight, small, beam_size, alpha, data
):
    model = make_model(num_decoder_layers=1)
    sources = make_sources(count, seed=count)
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=5, length_penalty=alpha)
    order = data.draw(st.permutations(range(count)))
    batch_limits = BatchLimits(
        most_rows=slots * beam_size,
        chunk_sentences=chunk,
        small_slots=small,
        steps_between_looks=steps,
        looks_in_flight=in_flight,
    )
    engine = CudaEngine(model, VOCABULARY, CPU, batch_limits)
    found = find(engine, [sources[index] for index in order], options)
    expected = search_plainly(model, sources, options)
    assert_same(found, [expected[index] for index in order])


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_a_wide_beam_finds_the_best_of_all(alpha):
    vocabulary = Vocabulary(5, 5, PAD, EOS)
    model = make_model(vocabulary)
    sources, words = [[3, EOS], [EOS], [4, UNK, EOS]], (UNK, 3, 4)
    options = SearchOptions(beam_size=MOST_BEAMS, max_extra_tokens=0, length_penalty=alpha)
    engine = CudaEngine(model, vocabulary, CPU)
    for source, hypotheses in zip(sources, find(engine, sources, options, 4), strict=True):
        ways = [
            [*way, EOS] for length in range(len(source)) for way in product(words, repeat=length)
        ]
        batch = make_batch(flatten([source] * len(ways)), flatten(ways), PAD)
        with torch.inference_mode():
            logs = token_log_probabilities(model, batch).where(batch.target.is_token, 0.0).sum(1)
        ranked = sorted(
            ((float(log) / ((5 + len(way)) / 6) ** alpha, tuple(way[:-1])) for log, way in
             zip(logs, ways, strict=True)),
            reverse=True,
        )[:4]  # fmt: skip
        assert [each.tokens for each in hypotheses] == [way for _, way in ranked]
        scores = [score for score, _ in ranked]
        assert [each.score for each in hypotheses] == pytest.approx(scores, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_translations_begin_as_they_must(beam_size):
    model = make_model()
    sources = make_sources(5)
    prefixes = [[7, 8], [], [9, 9], [], [5]]
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=4)
    engine = CudaEngine(model, VOCABULARY, CPU, BatchLimits(most_rows=2 * beam_size, **REFILLING))
    table = torch.tensor([[*each, -1, -1][:2] for each in prefixes])
    expected = search_plainly(model, sources, options, num_best=beam_size, prefixes=table)
    found = find(engine, sources, options, beam_size, prefixes)
    assert_same(found, expected)
    assert_same(find(engine, sources, options), search_plainly(model, sources, options))


def test_nobody_is_told_what_nobody_asked():
    found = find(
        CudaEngine(make_model(), VOCABULARY, CPU), make_sources(2), SearchOptions(beam_size=1),
        is_scored=False,
    )  # fmt: skip
    assert all(math.isnan(each.score) for (each,) in found)


@pytest.mark.parametrize(("most_places", "num_stations"), [(1 << 21, 1), (64, 2)])
def test_long_and_short_sentences_are_translated_apart_only_for_want_of_room(
    most_places, num_stations, monkeypatch
):
    monkeypatch.setattr(graph_engine, "LEAST_PITCH", 8)
    monkeypatch.setattr(graph_engine, "FEW_SENTENCES", 0)
    monkeypatch.setattr(CudaEngine, "_has_room", lambda *_: True)
    model, options = make_model(), SearchOptions(beam_size=2, max_extra_tokens=3)
    engine = CudaEngine(model, VOCABULARY, CPU, BatchLimits(most_places=most_places))
    sources = make_sources(9, longest=20)
    assert_same(find(engine, sources, options), search_plainly(model, sources, options))
    assert min(len({size.pitch for size in engine._buffers}), 2) == num_stations


@pytest.mark.parametrize(
    ("limits", "most_places", "expected"),
    [
        ([20, 30], 1 << 21, 256),  # few
        ([20, 300], 16, 384),  # few, whatever the room
        ([100] * 2000, 1 << 21, 128),
        ([100] * 2000 + [130], 1 << 21, 192),
        ([100] * 2000 + [300], 2048 * 384, 384),
        ([100] * 2000 + [300], 2048 * 384 - 1, 256),  # the longest apart
        ([100] * 2000 + [3000], 1 << 10, 128),
        ([100] * 20 + [3000], 42 * 3072, 3072),  # few rows need little room
    ],
)
def test_the_longest_sentence_decides_while_there_is_room(limits, most_places, expected):
    assert least_pitch(limits, 4, BatchLimits(most_places=most_places)) == expected


def test_an_interrupted_search_leaves_nothing_behind(monkeypatch):
    model, options = make_model(), SearchOptions(beam_size=3, max_extra_tokens=5)
    engine = CudaEngine(model, VOCABULARY, CPU, BatchLimits(most_rows=6, **REFILLING))
    sources = make_sources(7)
    calls = []

    def interrupt(self, *arguments):
        calls.append(arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(DeviceBuffers, "fetch", interrupt)
        with pytest.raises(KeyboardInterrupt):
            find(engine, sources, options)
    assert calls
    assert_same(find(engine, sources, options), search_plainly(model, sources, options))


def test_few_stations_are_kept(monkeypatch):
    monkeypatch.setattr(graph_engine, "MOST_BUFFERS", 2)
    engine = CudaEngine(make_model(), VOCABULARY, CPU)
    for beam_size in (1, 2, 1, 3):
        find(engine, make_sources(2), SearchOptions(beam_size=beam_size, max_extra_tokens=2))
    assert [size.num_beams for size in engine._buffers] == [1, 3]


def test_large_stations_give_way_to_others():
    engine = CudaEngine(make_model(), VOCABULARY, CPU, BatchLimits(most_places=2 * 2 * 256))
    for beam_size in (2, 1, 4):
        find(engine, make_sources(2), SearchOptions(beam_size=beam_size, max_extra_tokens=2))
    assert [size.num_beams for size in engine._buffers] == [1, 4]


def test_half_precision_is_near():
    model = make_model()
    options = SearchOptions(beam_size=3, max_extra_tokens=5)
    engine = CudaEngine(make_model().half(), VOCABULARY, CPU)
    sources = make_sources(20)
    found, exact = find(engine, sources, options), search_plainly(model, sources, options)
    pairs = list(zip(found, exact, strict=True))
    assert sum(ours[0].tokens == theirs[0].tokens for ours, theirs in pairs) >= 16
    for ours, theirs in pairs:
        assert ours[0].score == pytest.approx(theirs[0].score, abs=0.05)


@given(
    count=st.integers(1, 5000),
    longest=st.integers(1, 3000),
    pitch=st.sampled_from([128, 256, 4096]),
    beams=st.integers(1, MOST_BEAMS),
    rows=st.sampled_from([16, 2048]),
)
def test_there_is_room_for_what_is_asked(count, longest, pitch, beams, rows):
    batch_limits = BatchLimits(most_rows=rows)
    size = choose_size(count, longest, pitch, beams, batch_limits)
    assert size.num_slots >= 1
    assert size.num_slots == 1 or size.num_slots * beams <= rows
    assert size.num_slots == 1 or size.num_slots * beams * pitch <= batch_limits.most_places
    assert size.region_places >= longest + 7  # with padding
    assert size.num_regions == 1 or size.num_regions * size.region_sentences >= size.num_slots
    assert size.num_regions > 1 or count <= size.region_sentences


# On a real card


@pytest.fixture
def card():
    if not torch.cuda.is_available() or not language.has_triton:
        pytest.skip("needs a CUDA device and Triton")
    return torch.device("cuda")


def make_wide(dtype, device):
    model = make_model(model_dim=128, feed_forward_dim=256, num_heads=2, num_encoder_layers=2)
    return model.to(device, dtype)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 3, 40, 300])
@pytest.mark.parametrize("beam_size", [1, 2, 4, 5])
def test_float32_on_a_card_finds_what_a_cpu_finds(count, beam_size, card):
    options = SearchOptions(beam_size=beam_size, max_extra_tokens=9)
    sources = make_sources(count, longest=40)
    batch_limits = BatchLimits(most_rows=64 * beam_size, chunk_sentences=24, small_slots=16)
    engine = CudaEngine(make_wide(torch.float32, card), VOCABULARY, card, batch_limits)
    expected = search_plainly(make_wide(torch.float32, CPU), sources, options, num_best=beam_size)
    for _ in range(2):  # what was recorded serves again
        found = find(engine, sources, options, beam_size)
        pairs = list(zip(found, expected, strict=True))
        same = sum(ours[0].tokens == theirs[0].tokens for ours, theirs in pairs)
        assert same >= 0.995 * count - 1
        for ours, theirs in pairs:
            assert ours[0].score == pytest.approx(theirs[0].score, abs=1e-3)


@pytest.mark.gpu
def test_the_graph_does_what_its_work_does(card):
    options = SearchOptions(beam_size=4, max_extra_tokens=9)
    sources = make_sources(100, longest=30)
    model, batch_limits = (
        make_wide(torch.float32, card),
        BatchLimits(most_rows=64, chunk_sentences=8),
    )
    recorded, eager = (CudaEngine(model, VOCABULARY, card, batch_limits) for _ in range(2))
    found = find(recorded, sources, options)
    find(eager, sources, options)
    for buffers in eager._buffers.values():
        buffers._step = buffers._extend
    assert_same(find(eager, sources, options), found, 1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 300])
def test_float16_on_a_card_is_near(count, card):
    options = SearchOptions(beam_size=4, max_extra_tokens=9)
    sources = make_sources(count, longest=40)
    engine = CudaEngine(make_wide(torch.float16, card), VOCABULARY, card)
    found = find(engine, sources, options)
    exact = search_plainly(make_wide(torch.float32, CPU), sources, options)
    near = [
        abs(ours[0].score - theirs[0].score) < 0.05
        for ours, theirs in zip(found, exact, strict=True)
    ]
    assert sum(near) >= 0.95 * count


@pytest.mark.gpu
def test_prefixes_on_a_card(card):
    options = SearchOptions(beam_size=3, max_extra_tokens=4)
    sources, prefixes = make_sources(5), [[7, 8], [], [9, 9], [], [5]]
    engine = CudaEngine(make_wide(torch.float32, card), VOCABULARY, card)
    for (best,), prefix in zip(find(engine, sources, options, 1, prefixes), prefixes, strict=True):
        assert list(best.tokens[: len(prefix)]) == prefix
