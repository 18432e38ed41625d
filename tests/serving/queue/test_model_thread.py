"""A worker's failures stay with whoever caused them."""

import asyncio
import logging

import pytest

from dragoman.serving.queue.batching import BatchQueue
from dragoman.serving.queue.model_thread import ModelThread
from dragoman.serving.queue.pending_requests import PendingRequest, SideTask
from dragoman.serving.service_types import Client, ServiceError


class Shouter:
    """Work that shouts, and breaks at some words."""

    def __init__(self):
        self.calls = []

    def __call__(self, tasks):
        self.calls.append(list(tasks))
        if any("poison" in task for task in tasks):
            raise RuntimeError(f"cannot bear {tasks}")
        if any("refused" in task for task in tasks):
            raise ServiceError("bad_request", "not that word")
        return [task.upper() for task in tasks]


class Scene:
    """A worker, its queue, and what it was told."""

    def __init__(self):
        self.queue = BatchQueue(batch_tokens=10_000, queue_tokens=10**6, wait_seconds=0.0)
        self.work = Shouter()
        self.noted = []
        self.thread = ModelThread(
            "m", self.queue, self.work, lambda task: task.endswith("!"),
            lambda *figures: self.noted.append(figures),
        )  # fmt: skip

    def run(self, requests):
        """Submit requests together, and give what becomes of each."""

        async def submit():
            loop = asyncio.get_running_loop()
            pending = [
                PendingRequest(
                    client=Client(name=str(number)), tasks=tasks, costs=[1] * len(tasks), loop=loop
                )
                for number, tasks in enumerate(requests)
            ]
            for each in pending:
                self.queue.submit(each)
            self.thread.start()
            return await asyncio.gather(*(each.done for each in pending), return_exceptions=True)

        found = asyncio.run(submit())
        self.queue.close()
        self.thread.join(10)
        assert not self.thread.is_alive
        return found


@pytest.fixture
def scene():
    return Scene()


def test_results_go_to_those_who_asked(scene):
    assert scene.run([["a", "b"], ["c"]]) == [["A", "B"], ["C"]]
    (figures,) = scene.noted
    assert figures[:2] == (3, 3)


def test_only_equal_groups_go_together(scene):
    assert scene.run([["a", "b!", "c"], ["d!"]]) == [["A", "B!", "C"], ["D!"]]
    assert sorted(map(sorted, scene.work.calls)) == [["a", "c"], ["b!", "d!"]]


def test_only_the_culprit_fails(scene, caplog):
    requests = [[f"word {number}"] for number in range(40)]
    requests[17] = ["fine", "poison", "fine too"]
    with caplog.at_level(logging.ERROR):
        found = scene.run(requests)
    failure = found.pop(17)
    assert (failure.kind, failure.message) == ("failed", "the text could not be translated")
    assert found == [[f"WORD {number}"] for number in range(40) if number != 17]
    assert len(scene.work.calls) <= 2 * 6 + 1  # by halves, not one by one
    assert "RuntimeError" in caplog.text
    assert "poison" not in caplog.text  # nobody's words in the log


def test_a_refusal_is_passed_on(scene):
    found = scene.run([["refused!"], ["fine"]])
    assert found[0].message == "not that word"
    assert found[1] == ["FINE"]


def test_the_worker_goes_on_after_failures_and_after_loops_that_are_gone(scene):
    async def cancel_all():
        loop = asyncio.get_running_loop()
        scene.queue.submit(
            PendingRequest(client=Client(name="x"), tasks=["a"], costs=[1], loop=loop)
        )
        scene.queue.submit_side_task(SideTask(work=int, loop=loop))

    asyncio.run(cancel_all())  # its loop is closed before the worker begins
    assert scene.run([["poison"], ["b"]])[1] == ["B"]


def test_other_work_gives_its_result_or_its_exception(scene):
    async def ask():
        loop = asyncio.get_running_loop()
        good, bad = SideTask(work=lambda: 7, loop=loop), SideTask(work=lambda: 1 // 0, loop=loop)
        for each in (good, bad):
            scene.queue.submit_side_task(each)
        scene.thread.start()
        return await asyncio.gather(good.done, bad.done, return_exceptions=True)

    seven, error = asyncio.run(ask())
    scene.queue.close()
    scene.thread.join(10)
    assert seven == 7
    assert isinstance(error, ZeroDivisionError)
