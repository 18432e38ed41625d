"""Allocate and release entries of the KV pool, one for each token; reorder beams without copies."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled


class FreeList(NamedTuple):
    """Free entries of the KV pool, of which `counts[0]` are left, and marks for collection.

    `counts[1]` is the newest mark.
    """

    free: np.ndarray
    marks: np.ndarray
    counts: np.ndarray


@compiled
def allocate_entry(free_list) -> int:
    """Allocate a free entry."""
    free_list.counts[0] -= 1
    return free_list.free[free_list.counts[0]]


@compiled
def release_entry(place, free_list) -> None:
    """Return an entry to the free list."""
    free_list.free[free_list.counts[0]] = place
    free_list.counts[0] += 1


@compiled
def release_unmarked(own, count, length, free_list) -> None:
    """Release the entries of some hypotheses that lack the newest mark, each once."""
    mark = free_list.counts[1]
    for beam in range(count):
        for place in range(length):
            each = own[beam, place]
            if free_list.marks[each] != mark:
                free_list.marks[each] = mark
                release_entry(each, free_list)


@compiled
def reorder_entries(slot, old_count, slots, num_beams, free_list) -> None:
    """Give each hypothesis the entries of its parent, and release those that nobody uses."""
    length, count = slots.lengths[slot], slots.counts[slot]
    own = slots.own[slot * num_beams : (slot + 1) * num_beams]
    if count == old_count == 1:
        return
    free_list.counts[1] += 1
    room = np.empty((count, length), np.uint32)
    for beam in range(count):
        parent = slots.parents[slot, length - 1, beam]
        for place in range(length):
            room[beam, place] = own[parent, place]
            free_list.marks[own[parent, place]] = free_list.counts[1]
    release_unmarked(own, old_count, length, free_list)
    for beam in range(count):
        own[beam, :length] = room[beam]


@compiled
def release_slot(slot, old_count, slots, sentences, num_beams, free_list) -> None:
    """Release a finished slot and all its entries."""
    sentence = slots.sentences[slot]
    free_list.counts[1] += 1
    release_unmarked(slots.own[slot * num_beams :], old_count, slots.lengths[slot], free_list)
    for place in range(sentences.starts[sentence + 1] - sentences.starts[sentence]):
        release_entry(slots.source[slot, place], free_list)
    slots.sentences[slot] = -1
