"""Hypotheses of a slot: which go on, which are finished, when it is done."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.slots import (
    extend_hypotheses,
    finish_hypothesis,
    forced_token,
    is_done,
    make_slots,
    start_sentence,
)
from dragoman.kernels.cpu_search.task import Rules, Sentences
from dragoman.kernels.cuda_search.beam_step import farthest_end

EOS, START = 0, 2


def make_all(*, beams=2, best=2, alpha=1.0, limit=9, prefix=()):
    rules = Rules(
        beams, 2 * beams, best, alpha, EOS, START, True, np.zeros(64, np.bool_), False, False
    )
    sentences = Sentences(
        np.zeros(3, np.int32), np.array([0, 3]), np.array([limit]),
        np.array([prefix], np.int64).reshape(1, -1), np.zeros(0, np.int64), np.zeros(2, np.int64),
    )  # fmt: skip
    slots = make_slots(1, limit, 3, rules)
    start_sentence(0, 0, slots, rules)
    return slots, sentences, rules


def test_a_sentence_begins_with_one_empty_hypothesis():
    slots, _, _ = make_all()
    assert (slots.counts[0], slots.lengths[0], slots.newest[0, 0]) == (1, 0, START)
    assert (slots.finished[0] == -np.inf).all()


def test_what_must_come():
    slots, sentences, rules = make_all(limit=4, prefix=(7, -1))
    found = []
    for length in range(4):
        slots.lengths[0] = length
        found.append(forced_token(0, slots, sentences, rules))
    assert found == [7, -1, -1, EOS]


def test_the_best_of_the_finished_stay_in_order():
    slots, _, rules = make_all(best=3)
    chance = np.random.default_rng(1)
    scores = []
    for length in range(8):
        slots.lengths[0] = length
        total = -10 * chance.random()
        finish_hypothesis(0, np.float32(total), length, slots, rules)
        scores.append((total / ((5 + length + 1) / 6), length))
    best = sorted(scores, reverse=True)[:3]
    assert slots.finished[0].tolist() == pytest.approx([score for score, _ in best], rel=1e-5)
    assert slots.finished_lengths[0].tolist() == [length for _, length in best]
    assert slots.finished_parents[0].tolist() == [length for _, length in best]


def test_of_the_best_extensions_some_end_and_some_go_on():
    slots, _, rules = make_all()
    slots.counts[0] = 2
    slots.alive[0] = [-1.0, -2.0]
    best = np.array([[-0.1, -0.5, -3, -9], [-0.2, -0.3, -7, -8]], np.float32)
    words = np.array([[5, EOS, 6, 7], [8, 5, EOS, 9]])
    extend_hypotheses(0, 0, best, words, slots, rules)
    assert slots.counts[0] == 2
    assert slots.newest[0].tolist() == [5, 8]
    assert slots.parents[0, 0].tolist() == [0, 1]
    assert slots.alive[0].tolist() == pytest.approx([-1.1, -2.2])
    assert slots.finished_logs[0, 0] == pytest.approx(-1.5)
    assert slots.finished_parents[0, 0] == 0


@pytest.mark.parametrize("length", [1, 7, 8, 40])
def test_nothing_waits_for_what_cannot_overtake(length):
    slots, sentences, rules = make_all(best=1, alpha=0.6, limit=100)
    slots.lengths[0], slots.alive[0, 0] = length, -3.0
    bound = -3.0 / ((5 + farthest_end(length)) / 6) ** 0.6
    for score, expected in ((bound - 1e-3, False), (bound + 1e-3, True)):
        slots.finished[0, 0] = score
        assert is_done(0, slots, sentences, rules) == expected
    slots.counts[0], slots.finished[0, 0] = 0, -np.inf
    assert is_done(0, slots, sentences, rules)
