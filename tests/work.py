"""How work grows with its size, whatever else the machine does."""

import time
from collections.abc import Callable

FACTOR = 8


def grows_linearly(work: Callable[[int], object], few: int) -> bool:
    """Say whether eight times as much costs far less than the square of eight, in time of the CPU.

    Only this thread's own time counts, so that a busy machine changes nothing.
    """

    def cost(size: int) -> float:
        start = time.thread_time()
        work(size)
        return time.thread_time() - start

    least, most = (min(cost(size) for _ in range(2)) for size in (few, FACTOR * few))
    return most < 3 * FACTOR * least + 0.05
