"""Samples come as often as teacher forcing says, and end where they should."""

import math
from collections import Counter
from itertools import product

import pytest
import torch

from dragoman.data.batches import flatten, make_batch, pad_sequences
from dragoman.decoding.sampling import sample_translations
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions

EOS, UNK, PAD = 0, 1, 2
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
