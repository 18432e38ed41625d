"""Samples at a temperature, and distributions of the next word, against their definitions."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.errors import DataError
from dragoman.insight.sampling import TEMPERATURES, draw_samples, find_next_words

SOURCE, TARGET = "The old dog sees.", "Le vieux chien."


def test_samples_are_drawn_again_with_the_same_seed(translator):
    drawn = [
        draw_samples(translator, SOURCE, temperature=1.0, num_samples=4, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 4
    logs = [each.log_probability for each in drawn[0]]
    assert logs == sorted(logs, reverse=True)


def test_cold_samples_are_greedy_search(translator):
    cold = draw_samples(translator, SOURCE, temperature=0.01, num_samples=3, seed=1)
    options = replace(translator.options, beam_size=1, search_again=False)
    greedy = translator.translate(SOURCE, options=options)
    assert {each.text for each in cold} == {greedy.text}
    assert cold[0].log_probability == pytest.approx(sum(greedy.log_probabilities), abs=1e-4)


def test_hot_samples_are_less_probable(translator):
    means = [
        np.mean([each.log_probability for each in draw_samples(
            translator, SOURCE, temperature=temperature, num_samples=12, seed=1)])
        for temperature in (0.3, 2.0)
    ]  # fmt: skip
    assert means[0] > means[1]


def test_next_words_are_the_softmax_at_every_temperature(translator):
    vocabularies = translator.folder.vocabularies
    said = (*vocabularies.target.encode([TARGET])[0], vocabularies.eos_id)
    batch = make_batch(flatten([translator.encode(SOURCE)]), flatten([said]), vocabularies.pad_id)
    with torch.no_grad():
        logits = translator.model.output(translator.model.forward(batch).hidden)[0].double()
    places = find_next_words(translator, SOURCE, TARGET)
    assert [each.ids[-1] for each in places] == list(said)
    assert places[-1].pieces[-1] == "⟨end⟩"
    for place, scores in zip(places, logits, strict=True):
        assert len(set(place.ids)) == len(place.ids) == 12
        best = set(scores.topk(11).indices.tolist())
        assert best <= set(place.ids)
        for temperature, normaliser in zip(TEMPERATURES, place.normalisers, strict=True):
            expected = (scores / temperature).softmax(-1)[place.ids].tolist()
            shown = [math.exp(logit / temperature - normaliser) for logit in place.logits]
            assert shown == pytest.approx(expected, abs=1e-6)


def test_empty_sentence_is_refused(translator):
    with pytest.raises(DataError, match="the sentence is empty; give at least one word"):
        find_next_words(translator, "", TARGET)
