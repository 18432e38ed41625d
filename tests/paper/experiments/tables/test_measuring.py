"""Measurements against what is known beforehand."""

import time

import torch
from torch import nn

from dragoman.paper.experiments.tables.measuring import (
    count_operations,
    find_longest_chain,
    measure_peak_bytes,
    measure_seconds,
)

CPU = torch.device("cpu")


def test_operations_of_a_product():
    with torch.device("meta"):
        assert count_operations(lambda: torch.ones(3, 5) @ torch.ones(5, 7)) == 2 * 3 * 5 * 7


def test_the_shortest_time_counts():
    waits = iter([0.0, 0.05, 0.01, 0.05])
    seconds = measure_seconds(lambda: time.sleep(next(waits)), repeats=3)
    assert 0.01 <= seconds < 0.05


def test_memory_is_what_lives_at_the_same_time():
    size = 4 * 1000

    def one_after_another():
        for _ in range(10):
            torch.zeros(1000)

    def all_at_once():
        kept = [torch.zeros(1000) for _ in range(10)]
        del kept

    assert measure_peak_bytes(one_after_another, CPU) <= 2 * size
    assert measure_peak_bytes(all_at_once, CPU) == 10 * size


def test_views_and_what_was_there_before_cost_nothing():
    given = torch.zeros(1000)
    assert measure_peak_bytes(lambda: given.view(10, 100)[2:4].transpose(0, 1), CPU) == 0
    assert measure_peak_bytes(lambda: given.add_(1), CPU) == 0


def test_chain_grows_with_depth_and_not_with_width():
    x = torch.ones(3, requires_grad=True)

    def tower(depth: int) -> torch.Tensor:
        y = x
        for _ in range(depth):
            y = y.exp()
        return y

    assert find_longest_chain(tower(7)) - find_longest_chain(tower(2)) == 5
    wide = sum(x.exp() for _ in range(50)) * 0 + tower(200)
    assert find_longest_chain(wide) == find_longest_chain(tower(200)) + 1


def test_chains_that_meet_again_are_counted_once():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(60):
        y = y + y
    assert find_longest_chain(y) == 60 + 1


def test_chain_of_a_layer_is_short():
    assert find_longest_chain(nn.Linear(3, 3)(torch.ones(2, 3))) < 10
