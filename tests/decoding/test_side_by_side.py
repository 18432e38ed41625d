"""Batches on cores of their own: results in order, threads given back, errors passed on."""

import threading

import pytest
import torch

from dragoman.decoding.side_by_side import halve_last, work_side_by_side


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_results_come_in_order_and_the_number_of_threads_comes_back(two_threads):
    seen = []

    def work(number):
        seen.append((threading.current_thread().name, torch.get_num_threads()))
        return number * number

    assert work_side_by_side(work, range(20)) == [number * number for number in range(20)]
    assert {threads for _, threads in seen} == {1}
    assert all(name.startswith("batch") for name, _ in seen)
    assert torch.get_num_threads() == 2


def test_two_work_at_the_same_time(two_threads):
    meeting = threading.Barrier(2)
    assert len(work_side_by_side(lambda _: meeting.wait(60), [1, 2])) == 2


def test_one_thing_has_all_threads(two_threads):
    assert work_side_by_side(lambda _: torch.get_num_threads(), ["one"]) == [2]


def test_a_failure_is_passed_on_and_the_threads_come_back(two_threads):
    def work(number):
        raise ValueError(f"number {number}")

    with pytest.raises(ValueError, match="number 1"):
        work_side_by_side(work, [1, 2, 3])
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    ("batches", "num_cores", "expected"),
    [
        ([[1, 2], [3, 4], [5, 6, 7]], 2, [[1, 2], [3], [4], [5, 6], [7]]),
        ([[1, 2], [3], [4]], 2, [[1, 2], [3], [4]]),
        ([[1, 2], [3, 4]], 2, [[1, 2], [3, 4]]),
        ([[1, 2], [3, 4]], 1, [[1, 2], [3, 4]]),
        ([], 2, []),
    ],
    ids=str,
)
def test_the_last_batch_of_each_core_is_halved(batches, num_cores, expected):
    assert halve_last(batches, num_cores) == expected
