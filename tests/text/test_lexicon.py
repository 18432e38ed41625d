"""A dictionary is found again, and the counting is what the definition says."""

from collections import defaultdict

import numpy as np
import pytest

from dragoman.text import lexicon
from dragoman.text.lexicon import learn_lexicon


def make_pairs(seed, num_pairs, num_words, shift):
    """Sentences of random words, and their translations word by word in any order."""
    chance = np.random.default_rng(seed)
    sources = [chance.integers(0, num_words, chance.integers(1, 7)) for _ in range(num_pairs)]
    targets = [chance.permutation((each + shift) % num_words) for each in sources]
    return sources, targets


def learn_slowly(sources, targets):
    """The same model, word by word."""
    table = {
        (s, t): 1.0
        for source, target in zip(sources, targets, strict=True)
        for s in source
        for t in target
    }
    for _ in range(4):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in zip(sources, targets, strict=True):
            for t in target:
                whole = sum(table[s, t] for s in source)
                for s in source:
                    counts[s, t] += table[s, t] / whole
                    totals[s] += table[s, t] / whole
        table = {(s, t): counts[s, t] / totals[s] for s, t in counts}
    return table


def test_a_dictionary_is_found():
    sources, targets = make_pairs(1, 400, 30, 7)
    table = learn_lexicon(sources, targets, 30).likeliest(30, 3)
    assert table[:, 0].tolist() == [(word + 7) % 30 for word in range(30)]


@pytest.mark.parametrize("chunk", [3, 1000])
def test_it_is_the_model_of_brown_and_others(monkeypatch, chunk):
    monkeypatch.setattr(lexicon, "CHUNK_PAIRS", chunk)
    sources, targets = make_pairs(2, 40, 9, 2)
    found = learn_lexicon(sources, targets, 9, num_iterations=4)
    slow = learn_slowly([s.tolist() for s in sources], [t.tolist() for t in targets])
    entries = zip(found.sources.tolist(), found.targets.tolist(), strict=True)
    fast = dict(zip(entries, found.probabilities.tolist(), strict=True))
    assert fast == pytest.approx(slow, abs=1e-12)


def test_words_without_enough_translations_are_filled_up():
    found = learn_lexicon([np.array([1])], [np.array([0, 2])], 4)
    table = found.likeliest(3, 3)
    assert table.tolist() == [[-1, -1, -1], [0, 2, -1], [-1, -1, -1]]


def test_nothing_to_learn_from():
    assert learn_lexicon([], [], 5).likeliest(2, 2).tolist() == [[-1, -1], [-1, -1]]
