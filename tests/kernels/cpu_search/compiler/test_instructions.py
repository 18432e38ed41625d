"""Instructions of our own do what they say."""

import sys
import threading

import numpy as np
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.compiler.instructions import (
    as_float,
    as_int,
    atomic_add,
    borrow,
    compiled,
    keep_alive,
)


def test_bits_are_read_both_ways():
    @compiled
    def both(fraction):
        return as_int(fraction), as_float(as_int(fraction))

    assert both(np.float32(1)) == (0x3F800000, 1.0)


def test_threads_never_take_the_same_number():
    @compiled
    def take(shared, taken):
        for index in range(len(taken)):
            taken[index] = atomic_add(shared.ctypes.data, 1)

    shared = np.zeros(1, np.int64)
    parts = np.zeros((2, 20_000), np.int64)
    take(shared, parts[0][:0])
    threads = [threading.Thread(target=take, args=(shared, part)) for part in parts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert np.array_equal(np.sort(parts.ravel()), np.arange(40_000))


@compiled
def add_rows(parts):
    (numbers, others), factor = borrow(parts)
    own = np.ones(numbers.shape[1])
    borrowed, total = borrow(own), 0.0
    for row in range(len(numbers)):
        line = numbers[row]
        total += factor * (line * borrowed).sum() + others[row]
    keep_alive(own)
    return total


def test_borrowed_arrays_are_the_same_and_stay_their_owners():
    numbers, others = np.arange(12.0).reshape(3, 4), np.array([1, 2, 3])
    counts = [sys.getrefcount(each) for each in (numbers, others)]
    for _ in range(3):
        assert add_rows(((numbers, others), 2.0)) == 2 * numbers.sum() + 6
    assert [sys.getrefcount(each) for each in (numbers, others)] == counts
    assert numbers.tolist() == np.arange(12.0).reshape(3, 4).tolist()
