"""Places in a pool of keys and values: taken by words, and free again when nobody looks there."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import compiled


class Places(NamedTuple):
    """Places of the pool that are free, of which `counts[0]` are left, and marks to find them by.

    `counts[1]` is the newest mark.
    """

    free: np.ndarray
    marks: np.ndarray
    counts: np.ndarray


@compiled
def take_place(places) -> int:
    """Take a free place."""
    places.counts[0] -= 1
    return places.free[places.counts[0]]


@compiled
def give_back(place, places) -> None:
    """Say that a place is free."""
    places.free[places.counts[0]] = place
    places.counts[0] += 1


@compiled
def give_back_unmarked(own, count, length, places) -> None:
    """Free those places of some hypotheses that do not have the newest mark, each once."""
    mark = places.counts[1]
    for beam in range(count):
        for place in range(length):
            each = own[beam, place]
            if places.marks[each] != mark:
                places.marks[each] = mark
                give_back(each, places)


@compiled
def follow(slot, old_count, slots, num_beams, places) -> None:
    """Let each hypothesis have the places of the one that it continues; free all others."""
    length, count = slots.lengths[slot], slots.counts[slot]
    own = slots.own[slot * num_beams : (slot + 1) * num_beams]
    if count == old_count == 1:
        return
    places.counts[1] += 1
    room = np.empty((count, length), np.uint32)
    for beam in range(count):
        parent = slots.parents[slot, length - 1, beam]
        for place in range(length):
            room[beam, place] = own[parent, place]
            places.marks[own[parent, place]] = places.counts[1]
    give_back_unmarked(own, old_count, length, places)
    for beam in range(count):
        own[beam, :length] = room[beam]


@compiled
def leave(slot, old_count, slots, sentences, num_beams, places) -> None:
    """Free a slot that is done, and all its places."""
    sentence = slots.sentences[slot]
    places.counts[1] += 1
    give_back_unmarked(slots.own[slot * num_beams :], old_count, slots.lengths[slot], places)
    for place in range(sentences.starts[sentence + 1] - sentences.starts[sentence]):
        give_back(slots.source[slot, place], places)
    slots.sentences[slot] = -1
