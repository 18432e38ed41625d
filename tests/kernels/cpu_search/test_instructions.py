"""Instructions of our own do what they say."""

import threading

import numpy as np
import tests.kernels.cpu_search.compiler  # noqa: F401

from dragoman.kernels.cpu_search.instructions import as_float, as_int, compiled, take_numbers


def test_bits_are_read_both_ways():
    @compiled
    def both(fraction):
        return as_int(fraction), as_float(as_int(fraction))

    assert both(np.float32(1)) == (0x3F800000, 1.0)


def test_threads_never_take_the_same_number():
    @compiled
    def take(shared, taken):
        for index in range(len(taken)):
            taken[index] = take_numbers(shared.ctypes.data, 1)

    shared = np.zeros(1, np.int64)
    parts = np.zeros((2, 20_000), np.int64)
    take(shared, parts[0][:0])
    threads = [threading.Thread(target=take, args=(shared, part)) for part in parts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert np.array_equal(np.sort(parts.ravel()), np.arange(40_000))
