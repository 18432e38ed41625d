"""Batches that have nothing to do with one another, each on a core of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")


def work_side_by_side(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Do the same with several things, one thing a core.

    Parameters
    ----------
    work : Callable[[Item], Result]
        What to do, called by several threads at once.
    items : Sequence[Item]
        With what, those that take longest first.

    Returns
    -------
    list[Result]
        What came of each, in that order.

    Notes
    -----
    Within one operation cores share what is often too little to be shared, and wait for one another
    at its end. Things that are independent need not wait. As many threads work as PyTorch would use
    in an operation, each of whose operations then has one.
    """
    num_threads = torch.get_num_threads()
    if num_threads == 1 or len(items) < 2:
        return [work(item) for item in items]

    def work_alone(item: Item) -> Result:
        torch.set_num_threads(1)
        return work(item)

    with ThreadPoolExecutor(min(num_threads, len(items)), "batch") as threads:
        try:
            asked = [threads.submit(work_alone, item) for item in items]
            wait(asked)
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise
        finally:
            torch.set_num_threads(num_threads)
    return [each.result() for each in asked]


def halve_last(batches: list[list[Item]], num_cores: int) -> list[list[Item]]:
    """Halve the last batch of each core, so that all cores finish at about the same time.

    Parameters
    ----------
    batches : list[list[Item]]
        Those that take longest first.
    num_cores : int
        How many work side by side.

    Returns
    -------
    list[list[Item]]
        The same things in the same order; as they were if no core has more than one.
    """
    if num_cores == 1 or len(batches) <= num_cores:
        return batches
    halved = batches[:-num_cores]
    for batch in batches[-num_cores:]:
        middle = (len(batch) + 1) // 2
        halved += [half for half in (batch[:middle], batch[middle:]) if half]
    return halved
