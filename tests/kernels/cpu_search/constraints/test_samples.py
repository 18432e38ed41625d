"""Words drawn by compiled functions, as often as they are probable."""

import math
from collections import Counter

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.constraints.samples import sample_token
from dragoman.kernels.cpu_search.task import Samples

SCORES = np.array([2.0, 0.5, -np.inf, 1.0, 0.0, 1.5], np.float32)


def draw_all(scores, uniforms, temperature=1.0, top_k=0, top_p=1.0):
    samples = Samples(np.zeros((1, 1, 1), np.float32), temperature, top_k, top_p)
    heap, shares = np.empty(len(scores), np.int64), np.empty(len(scores))
    return [sample_token(scores, np.float32(each), samples, heap, shares) for each in uniforms]


def find_kept(scores, temperature, top_k, top_p):
    """Give what each word that may be drawn weighs."""
    weights = {
        word: math.exp(score / temperature) for word, score in enumerate(scores) if score > -np.inf
    }
    order = sorted(weights, key=lambda word: -weights[word])[: top_k or len(weights)]
    total, before, kept = sum(weights[word] for word in order), 0.0, {}
    for word in order:
        if before < top_p * total:
            kept[word] = weights[word]
        before += weights[word]
    return kept


@pytest.mark.parametrize("temperature", [0.5, 1.5])
@pytest.mark.parametrize("top_k", [0, 1, 3, 100])
@pytest.mark.parametrize("top_p", [1.0, 0.6])
def test_words_are_drawn_as_often_as_they_are_probable(temperature, top_k, top_p):
    count = 20_000
    uniforms = np.random.default_rng(1).random(count, np.float32)
    found = Counter(draw_all(SCORES, uniforms, temperature, top_k, top_p))
    kept = find_kept(SCORES, temperature, top_k, top_p)
    assert set(found) == set(kept)
    for word, weight in kept.items():
        probability = weight / sum(kept.values())
        error = math.sqrt(probability * (1 - probability) / count)
        assert abs(found[word] / count - probability) < 5 * error + 1e-3


@pytest.mark.parametrize("scale", [0.001, 3.0])
def test_a_nucleus_of_many_words_and_one_of_few(scale):
    random = np.random.default_rng(2)
    scores = (scale * random.normal(size=3000)).astype(np.float32)
    kept = find_kept(scores, 1.0, 0, 0.9)
    found = set(draw_all(scores, random.random(4000, np.float32), top_p=0.9))
    assert found <= set(kept)
    assert len(found) > len(kept) / 2


@pytest.mark.parametrize("uniforms", [0.0, 1 - 2**-23])
def test_the_least_and_the_largest_chance_draw_a_possible_word(uniforms):
    scores = np.array([-np.inf, 1.0, 2.0, -np.inf], np.float32)
    for how in ({}, {"top_k": 4}, {"top_p": 0.99}):
        (word,) = draw_all(scores, [uniforms], **how)
        assert word in (1, 2)


def test_where_nothing_is_possible_anything_is_drawn():
    assert draw_all(np.full(4, -np.inf, np.float32), [0.5], top_k=2) == [0]
