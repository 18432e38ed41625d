"""Tickets and other work are settled once."""

import asyncio

import pytest

from dragoman.serving.queue.pending_requests import Batch, PendingRequest, SideTask
from dragoman.serving.service_types import Client, ServiceError


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def make_ticket(loop, costs, name="a"):
    tasks = [f"{name}{index}" for index in range(len(costs))]
    return PendingRequest(client=Client(name=name), tasks=tasks, costs=costs, loop=loop)


def test_a_batch_lists_its_sentences_and_counts_their_requests(loop):
    one, other = make_ticket(loop, [1, 1]), make_ticket(loop, [1], "b")
    batch = Batch(places=[(one, 1), (other, 0), (one, 0)], num_tokens=3)
    assert batch.tasks() == ["a1", "b0", "a0"]
    assert batch.count_requests() == 2


def test_a_ticket_is_done_when_its_last_sentence_is(loop):
    pending = make_ticket(loop, [1, 1])
    pending.set_result(1, "second")
    assert not pending.done.done()
    pending.set_result(0, "first")
    assert pending.done.result() == ["first", "second"]


def test_a_ticket_fails_with_its_first_failure(loop):
    pending = make_ticket(loop, [1, 1])
    failure = ServiceError("failed", "it broke")
    pending.set_result(1, failure)
    pending.set_result(0, "too late")
    assert pending.done.exception() is failure


def test_other_work_settles_once(loop):
    good, bad = SideTask(work=int, loop=loop), SideTask(work=int, loop=loop)
    good.set_result(3)
    good.set_result(4)
    bad.set_result(ValueError("x"))
    assert good.done.result() == 3
    assert isinstance(bad.done.exception(), ValueError)
