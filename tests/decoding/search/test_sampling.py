"""Samples come as often as teacher forcing says, and end where they should."""

import math
from collections import Counter
from itertools import product

import pytest
import torch

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.options import SamplingOptions, SearchOptions
from dragoman.decoding.search.beam import search
from dragoman.decoding.search.sampling import SamplingChooser, draw_words, sample_translations
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions

EOS, UNK, PAD = 0, 1, 2
CPU = torch.device("cpu")
WORDS = (UNK, 3, 4)
VOCABULARY = Vocabulary(5, 5, PAD, EOS)
SOURCES = [[3, 4, EOS], [4, EOS], [3, 3, 4, 3, EOS]]


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(4)
    options = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=8, num_heads=2
    )
    model = build_model(options, VOCABULARY).eval()
    with torch.no_grad():
        model.output.words.mul_(2)
    return model


def sample(model, limits, count, seed=1, **rest):
    torch.manual_seed(seed)
    source = pad_sequences(flatten(SOURCES), PAD)
    limits = torch.tensor(limits)
    return sample_translations(model, source, VOCABULARY, num_samples=count, limits=limits, **rest)


def every_sequence(limit):
    """All that can be drawn: what ends within the limit, and what is cut off there."""
    for length in range(limit):
        yield from ((*words, EOS) for words in product(WORDS, repeat=length))
    yield from product(WORDS, repeat=limit)


def test_frequencies_are_the_probabilities(model):
    limits, count = [3, 1, 2], 6000
    ids, lengths, _ = sample(model, limits, count)
    for row, limit in enumerate(limits):
        possible = list(every_sequence(limit))
        batch = make_batch(flatten([SOURCES[row]] * len(possible)), flatten(possible), PAD)
        with torch.no_grad():
            expected = token_log_probabilities(model, batch).sum(1).exp().tolist()
        assert sum(expected) == pytest.approx(1, abs=1e-5)
        drawn = zip(ids[row].tolist(), lengths[row].tolist(), strict=True)
        found = Counter(tuple(each[:length]) for each, length in drawn)
        assert set(found) <= set(possible)
        for sequence, probability in zip(possible, expected, strict=True):
            error = math.sqrt(probability * (1 - probability) / count)
            assert abs(found[sequence] / count - probability) < 5 * error + 1e-3, sequence


def test_samples_end_with_the_end_symbol_or_at_their_limit(model):
    limits = [4, 2, 9]
    ids, lengths, has_end = sample(model, limits, 40)
    assert ids.shape[:2] == lengths.shape == has_end.shape == (3, 40)
    assert ids.size(2) == lengths.max()
    assert has_end.any()
    assert not has_end.all()
    for row, limit in enumerate(limits):
        for each, length, ends in zip(ids[row], lengths[row], has_end[row], strict=True):
            tokens = each[:length].tolist()
            assert 1 <= length <= limit
            assert EOS not in tokens[:-1]
            assert PAD not in tokens
            assert (tokens[-1] == EOS) == bool(ends)
            assert ends or length == limit
            assert each[length:].eq(PAD).all()


def test_chance_comes_from_the_generator_alone(model):
    first, again, other = (sample(model, [5, 5, 5], 8, seed) for seed in (1, 1, 2))
    assert torch.equal(first.ids, again.ids)
    assert not torch.equal(first.lengths, other.lengths)
    own = [
        sample(model, [5, 5, 5], 8, seed, generator=torch.Generator().manual_seed(3)).ids
        for seed in (1, 2)
    ]
    assert torch.equal(*own)


def test_one_sample_is_enough(model):
    ids, lengths, _ = sample(model, [4, 4, 4], 1)
    assert ids.shape[:2] == lengths.shape == (3, 1)


# In the search


def draw(model, options, sources=SOURCES, num_samples=8, order=None, **rest):
    chosen = [sources[index] for index in order or range(len(sources))]
    chooser = SamplingChooser(
        options, chosen, num_samples=num_samples, capacity=20, eos_id=EOS, device=CPU
    )
    return search(
        model, pad_sequences(flatten(chosen), PAD), SearchOptions(max_extra_tokens=2), VOCABULARY,
        num_best=num_samples, chooser=chooser, **rest,
    )  # fmt: skip


def test_a_seed_and_a_sentence_give_the_same_samples_in_any_company_and_order(model):
    options = SamplingOptions(seed=5)
    together = draw(model, options)
    for order in ([2, 0, 1], [1], [2, 2]):
        again = draw(model, options, order=order)
        for index, hypotheses in zip(order, again, strict=True):
            assert [each.tokens for each in hypotheses] == [each.tokens for each in together[index]]
    other = draw(model, SamplingOptions(seed=6))
    assert [[each.tokens for each in row] for row in other] != [
        [each.tokens for each in row] for row in together
    ]


def test_fewer_samples_are_among_more(model):
    few, many = (draw(model, SamplingOptions(), num_samples=count) for count in (2, 9))
    for some, every in zip(few, many, strict=True):
        assert len(every) == 9
        remaining = Counter(each.tokens for each in every)
        assert not Counter(each.tokens for each in some) - remaining


@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(),
        SamplingOptions(temperature=0.5),
        SamplingOptions(temperature=2.0, top_k=2),
        SamplingOptions(top_p=0.7),
        SamplingOptions(top_k=3, top_p=0.5, temperature=1.5),
    ],
)
def test_words_are_drawn_as_often_as_they_are_probable(options):
    """Against a plain rewriting of temperature, top-k and top-p."""
    logits = torch.tensor([2.0, 0.5, -torch.inf, 1.0, 0.0, 1.5])
    count = 20_000
    chance = torch.rand(1, 1, count, generator=torch.Generator().manual_seed(1))
    found = draw_words(logits.view(1, 1, -1), chance, options).flatten().tolist()
    weights = {word: math.exp(value / options.temperature) for word, value in enumerate(logits)}
    order = sorted((word for word in weights if weights[word]), key=lambda word: -weights[word])
    kept = order[: options.top_k]
    total = sum(weights[word] for word in kept)
    nucleus, mass = [], 0.0
    for word in kept:
        if mass < (options.top_p or 1):
            nucleus.append(word)
        mass += weights[word] / total
    total = sum(weights[word] for word in nucleus)
    frequencies = Counter(found)
    assert set(frequencies) == set(nucleus)
    for word in nucleus:
        probability = weights[word] / total
        error = math.sqrt(probability * (1 - probability) / count)
        assert abs(frequencies[word] / count - probability) < 5 * error + 1e-3


@pytest.mark.parametrize("scale", [0.001, 3.0])
def test_a_nucleus_of_many_words_and_one_of_few(scale):
    """Found among the first few hundred words, and by sorting them all."""
    torch.manual_seed(2)
    logits = torch.randn(2, 1, 3000) * scale
    chance = torch.rand(2, 1, 4000)
    words = draw_words(logits, chance, SamplingOptions(top_p=0.9))
    for row in range(2):
        shares, order = logits[row, 0].softmax(-1).sort(descending=True)
        size = int((shares.cumsum(0) - shares < 0.9).sum())
        assert set(words[row, 0].tolist()) <= set(order[:size].tolist())
        assert len(set(words[row, 0].tolist())) > size / 2


def test_samples_say_how_probable_the_model_finds_them(model):
    found = draw(model, SamplingOptions(temperature=3.0, top_k=3))
    for source, hypotheses in zip(SOURCES, found, strict=True):
        targets = [[*each.tokens, EOS] for each in hypotheses]
        batch = make_batch(flatten([source] * len(targets)), flatten(targets), PAD)
        with torch.no_grad():
            logs = token_log_probabilities(model, batch).tolist()
        for each, target, expected in zip(hypotheses, targets, logs, strict=True):
            assert each.token_log_probabilities == pytest.approx(expected[: len(target)], abs=1e-4)


def test_a_prefix_and_limits_hold_for_samples(model):
    prefixes = torch.tensor([[4, 4], [3, -1], [-1, -1]])
    found = draw(model, SamplingOptions(), prefixes=prefixes, banned_ids=(UNK,))
    for source, prefix, hypotheses in zip(SOURCES, prefixes.tolist(), found, strict=True):
        forced = [word for word in prefix if word >= 0]
        for each in hypotheses:
            assert list(each.tokens[: len(forced)]) == forced
            assert len(each.tokens) + 1 <= len(source) + 2 + len(forced)
            assert UNK not in each.tokens
