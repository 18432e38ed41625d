"""The best words of a vocabulary, compared with those of all scores."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401
import torch
from tests.kernels.cpu_search.test_tiles import make_matrix, multiply

from dragoman.kernels.cpu_search.best_tokens import find_best_tokens
from dragoman.kernels.cpu_search.task import ForbiddenTable, forbid_nothing, make_team
from dragoman.kernels.cpu_search.weight_layout import lay_out

SIZE, WIDTH = 500, 32


def make_words(size=SIZE):
    weight, bias = make_matrix((size, WIDTH))
    bias[5] = -np.inf
    return lay_out(weight, bias)


def make_states(count=20):
    return 3 * np.random.default_rng(3).normal(size=(count, WIDTH)).astype(np.float32)


def find(
    states, matrix, count, *, banned=(), forced=None, blocked=None, asked=None,
    forbidden=None, places=None, is_normalised=True, team=None,
):  # fmt: skip
    is_banned = np.zeros(matrix.outputs[:, 0].size, np.bool_)
    is_banned[list(banned)] = True
    best = np.empty((len(states), count), np.float32)
    words = np.empty((len(states), count), np.int64)
    forced = np.full(len(states), -1) if forced is None else np.array(forced)
    nothing = np.zeros((len(states), 0), np.int64)
    asked = nothing if asked is None else np.array(asked)
    requested_scores = np.empty(asked.shape, np.float32)
    find_best_tokens(
        states, len(states), matrix.panels, matrix.outputs, is_banned, forced,
        nothing if blocked is None else np.array(blocked), asked,
        forbid_nothing() if forbidden is None else forbidden,
        np.zeros(len(states), np.int64) if places is None else np.array(places),
        is_normalised, best, words, requested_scores, make_team(0, 1) if team is None else team,
    )  # fmt: skip
    return (best, words, requested_scores) if asked.size else (best, words)


@pytest.mark.parametrize("size", [64, SIZE])
@pytest.mark.parametrize("is_normalised", [True, False])
@pytest.mark.parametrize("count", [1, 8])
def test_the_best_are_found(size, is_normalised, count):
    matrix, states = make_words(size), make_states()
    scores = torch.from_numpy(multiply(states, matrix)[:, :size])
    banned = scores.argmax(1)[:3].tolist()
    expected = scores.log_softmax(1) if is_normalised else scores.clone()
    expected[:, banned] = -torch.inf
    best, words = find(states, matrix, count, banned=banned, is_normalised=is_normalised)
    logs, places = expected.topk(count)
    assert words.tolist() == places.tolist()
    np.testing.assert_allclose(best, logs, rtol=1e-6, atol=1e-5)


def test_what_is_forced_is_found_alone():
    matrix, states = make_words(), make_states(4)
    logs = torch.from_numpy(multiply(states, matrix)[:, :SIZE]).log_softmax(1)
    best, words = find(states, matrix, 3, banned=[7], forced=[-1, 499, 7, 5])
    assert best[1].tolist() == pytest.approx([float(logs[1, 499]), -np.inf, -np.inf], abs=1e-5)
    assert words[1, 0] == 499
    assert (best[2:] == -np.inf).all()  # forbidden, and the padding
    assert np.isfinite(best[0]).all()


def test_what_is_blocked_has_no_probability():
    matrix, states = make_words(), make_states(2)
    scores = torch.from_numpy(multiply(states, matrix)[:, :SIZE])
    first = scores.argmax(1).tolist()
    best, words = find(states, matrix, 2, blocked=[[first[0], 70], [-1, -1]])
    scores[0, [first[0], 70]] = -torch.inf
    logs, places = scores.log_softmax(1).topk(2)
    assert words.tolist() == places.tolist()
    np.testing.assert_allclose(best, logs, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("is_normalised", [True, False])
def test_scores_of_some_words_are_told(is_normalised):
    matrix, states = make_words(), make_states(15)
    scores = torch.from_numpy(multiply(states, matrix)[:, :SIZE])
    logs = scores.log_softmax(1) if is_normalised else scores
    asked = [[0, 63, 64, 480], [7, 8, 8, 8], *[[1, 2, 3, 499]] * 13]
    *_, found = find(states, matrix, 2, banned=[8, 64], asked=asked, is_normalised=is_normalised)
    expected = logs.gather(1, torch.tensor(asked))
    expected[0, 2] = expected[1, 1:] = -torch.inf
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


def test_what_is_forbidden_depends_on_what_was_said():
    """In place 0 one word is, in place 1 two are that would end a word."""
    matrix, states = make_words(), make_states(3)
    logs = torch.from_numpy(multiply(states, matrix)[:, :SIZE]).log_softmax(1)
    first, second, third = (logs[row].argmax().item() for row in range(3))
    ends = np.zeros(SIZE, np.bool_)
    ends[[second, third]] = True
    forbidden = ForbiddenTable(
        banned=np.zeros(0, np.int64), closing=np.array([[first], [SIZE - 1]]),
        is_complete=np.array([False, True]), ends_word=ends, keys=np.zeros(0, np.int64),
        targets=np.zeros(0, np.int64), defaults=np.zeros((2, SIZE), np.int64),
        may_begin=np.zeros(2, np.int64),
    )  # fmt: skip
    _, words = find(states, matrix, 1, forbidden=forbidden, places=[0, 1, 0])
    logs[0, first] = logs[2, first] = -torch.inf
    logs[1, [second, third, SIZE - 1]] = -torch.inf
    assert words[:, 0].tolist() == logs.argmax(1).tolist()
    best, _ = find(
        states, matrix, 1, forbidden=forbidden, places=[0, 1, 0], forced=[first, second, third]
    )
    is_possible = np.isfinite(best[:, 0]).tolist()
    assert is_possible == [False, False, third != first]


def test_neighbours_change_no_bit():
    matrix, states = make_words(), make_states(13)
    together = find(states, matrix, 4)
    for row in range(13):
        alone = find(states[row : row + 1], matrix, 4)
        assert all(
            np.array_equal(one[0], all_[row]) for one, all_ in zip(alone, together, strict=True)
        )


def test_fewer_words_than_are_asked_for():
    weight, bias = make_matrix((3, WIDTH))
    best, words = find(make_states(2), lay_out(weight, bias), 5)
    assert sorted(words[0, :3]) == [0, 1, 2]
    assert np.isfinite(best[:, :3]).all()
    assert (best[:, 3:] == -np.inf).all()
