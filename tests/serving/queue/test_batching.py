"""The queue gathers, refuses, waits and forgets as it should."""

import asyncio
import threading
import time

import pytest

from dragoman.serving.queue import batching
from dragoman.serving.queue.batching import MAX_SIDE_TASKS, BatchQueue
from dragoman.serving.queue.pending_requests import Batch, PendingRequest, SideTask
from dragoman.serving.service_types import Client, ServiceError


@pytest.fixture
def loop():
    loop = asyncio.new_event_loop()
    yield loop
    loop.close()


def make_queue(batch_tokens=100, queue_tokens=1000, wait_seconds=0.0, **more):
    return BatchQueue(
        batch_tokens=batch_tokens, queue_tokens=queue_tokens, wait_seconds=wait_seconds, **more
    )


def make_ticket(loop, costs, name="a"):
    tasks = [f"{name}{index}" for index in range(len(costs))]
    return PendingRequest(client=Client(name=name), tasks=tasks, costs=costs, loop=loop)


def refused(call):
    with pytest.raises(ServiceError) as caught:
        call()
    assert caught.value.kind == "overloaded"
    return caught.value


def test_batches_are_counted_in_subwords(loop):
    queue = make_queue(batch_tokens=100)
    pending = make_ticket(loop, [40, 40, 40, 300, 10])
    queue.submit(pending)
    assert (queue.num_sentences, queue.num_tokens) == (5, 430)
    sizes = []
    while queue.num_sentences:
        batch = queue.take()
        assert batch.num_tokens == sum(pending.costs[index] for _, index in batch.places)
        sizes.append(batch.num_tokens)
    assert sizes == [80, 40, 300, 10]  # what is larger than a batch is one by itself


def test_a_batch_has_sentences_of_all_clients(loop):
    queue = make_queue(batch_tokens=600)
    queue.submit(make_ticket(loop, [10] * 90, "hog"))
    queue.submit(make_ticket(loop, [10], "late"))
    batch = queue.take()
    assert batch.num_tokens == 600
    assert "late0" in batch.tasks()


def test_a_full_queue_refuses_and_says_when_to_come_back(loop):
    queue = make_queue(queue_tokens=100)
    queue.submit(make_ticket(loop, [60]))
    error = refused(lambda: queue.submit(make_ticket(loop, [60], "b")))
    assert error.message == "Slowdown: too many texts are waiting to be translated; try again"
    assert error.retry_after == 1.0
    queue.record_speed(num_tokens=50, seconds=5.0)
    assert refused(lambda: queue.submit(make_ticket(loop, [60], "b"))).retry_after == 6.0
    assert queue.num_tokens == 60
    queue.take()
    queue.submit(make_ticket(loop, [60], "b"))


def test_a_slow_model_s_queue_is_shorter(loop):
    queue = make_queue(batch_tokens=10, queue_tokens=1000, queue_seconds=2.0)
    queue.submit(make_ticket(loop, [30]))
    assert queue.has_room("b", 700)  # nobody knows how slow it is
    queue.record_speed(num_tokens=100, seconds=2.0)
    assert queue.has_room("b", 45)
    assert not queue.has_room("b", 80)
    for _ in range(30):
        queue.record_speed(num_tokens=1, seconds=1.0)
    assert not queue.has_room("b", 1)
    queue.take()
    queue.submit(make_ticket(loop, [1]))
    assert queue.has_room("b", 1)  # a batch may always wait


def test_an_empty_queue_takes_whatever_comes(loop):
    queue = make_queue(queue_tokens=100)
    queue.submit(make_ticket(loop, [5000]))
    refused(lambda: queue.submit(make_ticket(loop, [1], "b")))


def test_what_was_promised_is_never_refused(loop):
    queue = make_queue(queue_tokens=100)
    queue.submit(make_ticket(loop, [90]))
    queue.submit(make_ticket(loop, [90], "b"), is_accepted=True)
    assert queue.num_tokens == 180


def test_the_last_quarter_is_for_those_who_have_little_waiting(loop):
    queue = make_queue(queue_tokens=400)
    for _ in range(3):
        queue.submit(make_ticket(loop, [100], "hog"))
    refused(lambda: queue.submit(make_ticket(loop, [100], "hog")))
    queue.submit(make_ticket(loop, [100], "modest"))
    refused(lambda: queue.submit(make_ticket(loop, [1], "third")))


def test_withdrawn_sentences_leave_at_once(loop):
    queue = make_queue(batch_tokens=20)
    long, short = make_ticket(loop, [10] * 5), make_ticket(loop, [10], "b")
    queue.submit(long)
    assert len(queue.take().places) == 2
    queue.submit(short)
    assert queue.withdraw(long) == 3
    assert (queue.num_sentences, queue.num_tokens) == (1, 10)
    assert queue.take().places == [(short, 0)]
    assert queue.withdraw(long) == 0


def test_other_work_is_done_by_turns_with_batches(loop):
    queue = make_queue(batch_tokens=10)
    queue.submit(make_ticket(loop, [10] * 3))
    for _ in range(3):
        queue.submit_side_task(SideTask(work=int, loop=loop))
    kinds = [type(queue.take()) for _ in range(6)]
    assert kinds == [SideTask, Batch] * 3


def test_other_work_is_limited_and_can_be_withdrawn(loop):
    queue = make_queue()
    works = [SideTask(work=int, loop=loop) for _ in range(MAX_SIDE_TASKS + 1)]
    for each in works[:-1]:
        queue.submit_side_task(each)
    error = refused(lambda: queue.submit_side_task(works[-1]))
    assert error.message == "Slowdown: too many are looking into the model; try again"
    queue.withdraw_side_task(works[0])
    queue.withdraw_side_task(works[0])
    queue.submit_side_task(works[-1])
    assert queue.take() is works[1]


def test_a_closed_queue_is_emptied_before_it_ends(loop):
    queue = make_queue()
    queue.submit(make_ticket(loop, [10]))
    queue.close()
    assert isinstance(queue.take(), Batch)
    assert queue.take() is None


@pytest.fixture
def waits(monkeypatch):
    """The pauses, in seconds, that queues made of a wait for more; they do not really wait."""
    found = []

    def note(condition, timeout=None):
        assert timeout is not None, "waits for work that nobody brings"
        found.append(timeout)
        clock[0] += timeout

    clock = [1000.0]
    monkeypatch.setattr(threading.Condition, "wait", note)
    monkeypatch.setattr(batching.time, "monotonic", lambda: clock[0])
    return found


def submit_later(queue, loop, names, pause):
    def submit():
        for name in names:
            time.sleep(pause)
            queue.submit(make_ticket(loop, [1], name))

    thread = threading.Thread(target=submit)
    thread.start()
    return thread


def test_a_single_client_never_waits_for_company(loop, waits):
    queue = make_queue(wait_seconds=60.0)
    for _ in range(3):
        queue.submit(make_ticket(loop, [1]))
        assert len(queue.take().places) == 1
    assert waits == []


def test_a_thread_waits_for_its_share_of_those_it_has_answered(loop):
    queue = make_queue(wait_seconds=0.5)
    for name in "abcdef":
        queue.submit(make_ticket(loop, [1], name))
    assert len(queue.take().places) == 6
    thread = submit_later(queue, loop, "abcdef", 0.05)
    assert len(queue.take().places) == 3  # half of them: the others come while these are translated
    thread.join()
    assert len(queue.take().places) == 3


def test_a_thread_waits_only_while_more_keep_coming(loop, waits):
    queue = make_queue(wait_seconds=0.1)
    for name in "abcdefgh":
        queue.submit(make_ticket(loop, [1], name))
    queue.take()
    queue.submit(make_ticket(loop, [1], "a"))
    assert len(queue.take().places) == 1
    assert waits == [pytest.approx(0.1)]


def test_a_full_batch_does_not_wait(loop, waits):
    queue = make_queue(batch_tokens=10, wait_seconds=60.0)
    for name in "abcdefgh":
        queue.submit(make_ticket(loop, [1], name))
    queue.take()
    queue.submit(make_ticket(loop, [10], "a"))
    queue.take()
    assert waits == []


def test_threads_share_what_waits(loop):
    queue = make_queue(batch_tokens=1000, queue_tokens=10**6)
    sizes = []
    threads = [
        threading.Thread(target=lambda: sizes.append(queue.take().num_tokens)) for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 10
    while queue.num_threads < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    queue.submit(make_ticket(loop, [10] * 40))
    for thread in threads:
        thread.join(10)
    assert sizes == [200, 200]
