"""Exclude existing objects from garbage collection while many new ones are made."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# Fewer translations are no work for the collector.
MANY = 256


@contextmanager
def frozen_garbage_collector(num_results: int) -> Iterator[None]:
    """Freeze existing objects, so that the collector scans only new ones.

    Parameters
    ----------
    num_results : int
        How many results will be made; for less than `MANY` nothing is done, as what a server has
        just thrown away would grow old before its time with every call.

    Notes
    -----
    Thousands of translations are hundreds of thousands of objects, for which the collector goes
    again and again through all that the libraries have made: a quarter of the host's time.
    """
    if num_results < MANY:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
