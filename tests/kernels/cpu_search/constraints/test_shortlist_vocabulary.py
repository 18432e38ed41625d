"""Searching among some words is searching among all, the others forbidden."""

import numpy as np
import tests.kernels.cpu_search.compiler  # noqa: F401
from tests.kernels.cpu_search.test_best_tokens import SIZE, find, make_states, make_words

from dragoman.kernels.cpu_search.constraints.shortlist_vocabulary import (
    find_best_in_shortlist,
    load_shortlist,
    make_slot_shortlists,
)
from dragoman.kernels.cpu_search.task import forbid_nothing, make_team


def find_among(chosen, states, output, *, forced=None, is_normalised=True, most=200):
    choices = make_slot_shortlists(2, most, output)
    load_shortlist(1, np.arange(100), output, choices)  # the sentence before
    load_shortlist(1, np.array(chosen), output, choices)
    best = np.empty((len(states), 4), np.float32)
    words = np.empty((len(states), 4), np.int64)
    forced = np.full(len(states), -1) if forced is None else np.array(forced)
    find_best_in_shortlist(
        1, states, len(states), choices, forced, forbid_nothing(), is_normalised, best, words,
        make_team(0, 1),
    )  # fmt: skip
    return best, words


def test_scores_are_those_of_the_same_words():
    output, states = make_words(), make_states(7)
    chosen = np.unique(np.random.default_rng(4).integers(6, SIZE, 150))
    found = find_among(chosen, states, output, is_normalised=False)
    others = np.setdiff1d(np.arange(SIZE), chosen)
    expected = find(states, output, 4, banned=others, is_normalised=False)
    for one, other in zip(found, expected, strict=True):
        assert np.array_equal(one, other)


def test_probabilities_are_those_among_the_chosen():
    output, states = make_words(), make_states(3)
    best, _ = find_among([10, 20, 30, 40], states, output)
    np.testing.assert_allclose(np.exp(best).sum(1), 1, rtol=1e-5)


def test_what_is_forced_is_one_of_them():
    output, states = make_words(), make_states(2)
    best, words = find_among([10, 20, 300], states, output, forced=[-1, 300])
    assert words[1, 0] == 300
    assert np.isfinite(best[1, 0])
    assert (best[1, 1:] == -np.inf).all()
