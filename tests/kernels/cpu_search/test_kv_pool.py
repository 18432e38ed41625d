"""Places in the pool: none is lost, none is taken twice."""

import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.kv_pool import (
    FreeList,
    allocate_entry,
    release_slot,
    reorder_entries,
)
from dragoman.kernels.cpu_search.slots import make_slots, start_sentence
from dragoman.kernels.cpu_search.task import Rules, Sentences

NUM_PLACES, BEAMS, STEPS = 60, 3, 8


def make_all():
    free_list = FreeList(
        np.arange(NUM_PLACES)[::-1].astype(np.uint32),
        np.zeros(NUM_PLACES, np.int64),
        np.array([NUM_PLACES, 0]),
    )
    rules = Rules(BEAMS, 2 * BEAMS, 1, 0.6, 0, 2, True, np.zeros(64, np.bool_), False, False)
    numbers = np.zeros(1, np.int64)
    sentences = Sentences(
        np.zeros(4, np.int32), np.array([0, 4]), np.array([STEPS]),
        np.zeros((0, 0), np.int64), numbers, np.zeros(2, np.int64),
    )  # fmt: skip
    return free_list, make_slots(1, STEPS, 4, rules), rules, sentences


def list_free(free_list):
    free = free_list.free[: free_list.counts[0]].tolist()
    assert len(set(free)) == len(free)  # none twice
    return set(free)


@pytest.mark.parametrize("seed", range(5))
def test_what_no_hypothesis_names_is_free(seed):
    chance = np.random.default_rng(seed)
    free_list, slots, rules, sentences = make_all()
    start_sentence(0, 0, slots, rules)
    for place in range(4):
        slots.source[0, place] = allocate_entry(free_list)
    source = set(slots.source[0].tolist())
    for length in range(STEPS - 1):
        count = int(slots.counts[0])
        for beam in range(count):
            slots.own[beam, length] = allocate_entry(free_list)
        before = slots.own[:count, : length + 1].copy()
        new = int(chance.integers(1, BEAMS + 1))
        parents = chance.integers(0, count, new)
        slots.parents[0, length, :new] = parents
        slots.counts[0], slots.lengths[0] = new, length + 1
        reorder_entries(0, count, slots, BEAMS, free_list)
        assert np.array_equal(slots.own[:new, : length + 1], before[parents])
        named = set(slots.own[:new, : length + 1].ravel().tolist()) | source
        assert list_free(free_list) == set(range(NUM_PLACES)) - named
    release_slot(0, int(slots.counts[0]), slots, sentences, BEAMS, free_list)
    assert list_free(free_list) == set(range(NUM_PLACES))
    assert slots.sentences[0] == -1
