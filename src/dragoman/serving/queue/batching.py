"""Dynamic batching: sentences of all clients in batches for a model's threads."""

import math
import threading
import time
from collections import deque
from typing import Generic, TypeVar

from dragoman.serving.queue.fair_queue import FairQueue, QueuedItem
from dragoman.serving.queue.pending_requests import (
    NO_BATCH,
    Batch,
    PendingRequest,
    RunningBatch,
    SideTask,
)
from dragoman.serving.service_types import OVERLOADED_MESSAGE, ServiceError

TURN_TOKENS = 256
MAX_SIDE_TASKS = 8
# One part in so many of the queue is reserved for clients with few sentences in it.
RESERVED_SHARE = 4
# A thread pauses for a tenth of the duration of its last batch, so that the clients it has answered
# can send their next request; at most so many pauses in a row.
PAUSE_SHARE = 10
MOST_PAUSES = 4
# Decay of earlier measurements with each new batch.
SPEED_DECAY = 0.8

Task = TypeVar("Task")
Result = TypeVar("Result")


class BatchQueue(Generic[Task, Result]):
    """Batching queue of one model; filled by the event loop, emptied by the model's threads.

    Parameters
    ----------
    batch_tokens : int
        Subwords of a batch at most; a sentence that has more is a batch by itself.
    queue_tokens : int
        Subwords that may wait.
    wait_seconds : float
        How long a free thread waits at least for the next request before it begins; 0: not at all.
    queue_seconds : float
        How long what waits may take, by the speed of the last batches.

    Notes
    -----
    Batches are put together when a thread is free, not before, so that whoever came last may be in
    the next one. A free thread expects that those whom it has just answered ask again, and waits
    until its share of all clients is there: of those in its last batch, of those in the others'
    batches, and of those waiting. It waits no longer if no more have come for a moment; a client
    that asks alone, one thing after another, never waits. It takes no more than its share of all
    subwords that wait or are being translated: two threads with half of the sentences each are done
    sooner than one with all.
    """

    def __init__(
        self,
        *,
        batch_tokens: int,
        queue_tokens: int,
        wait_seconds: float,
        queue_seconds: float = math.inf,
    ) -> None:
        self._batch_tokens = batch_tokens
        self._queue_tokens = queue_tokens
        self._queue_seconds = queue_seconds
        self._wait = wait_seconds
        self._waiting: FairQueue[tuple[PendingRequest[Task, Result], int]] = FairQueue(TURN_TOKENS)
        self._side_tasks: deque[SideTask] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._oldest = self._newest = 0.0
        self._is_side_task_next = True
        self._running: dict[int, RunningBatch] = {}
        self._recent_tokens = self._recent_seconds = 0.0

    @property
    def num_sentences(self) -> int:
        """Number of queued sentences."""
        return self._waiting.num_items

    @property
    def num_tokens(self) -> int:
        """Number of queued subwords."""
        return self._waiting.cost

    @property
    def num_threads(self) -> int:
        """Number of threads that take batches."""
        return len(self._running)

    def submit(self, pending: PendingRequest[Task, Result], *, is_accepted: bool = False) -> None:
        """Queue the sentences of a request, or raise if the queue is full.

        Parameters
        ----------
        pending : PendingRequest
            The request.
        is_accepted : bool
            Whether it was accepted before, as the second half of a way through a third language
            is, and cannot be refused any more.
        """
        cost = sum(pending.costs)
        with self._changed:
            if not is_accepted and not self.has_room(pending.client.name, cost):
                raise ServiceError(
                    "overloaded",
                    OVERLOADED_MESSAGE,
                    retry_after=self.estimate_seconds(),
                )
            self._newest = time.monotonic()
            if not self._waiting:
                self._oldest = self._newest
            items = [QueuedItem((pending, index), cost) for index, cost in enumerate(pending.costs)]
            self._waiting.add(pending.client.name, pending, items)
            self._changed.notify_all()

    def withdraw(self, pending: PendingRequest[Task, Result]) -> int:
        """Remove the sentences of a cancelled request."""
        with self._changed:
            return self._waiting.withdraw(pending.client.name, pending)

    def submit_side_task(self, side_task: SideTask) -> None:
        """Queue a side task, or raise if too many wait."""
        with self._changed:
            if len(self._side_tasks) >= MAX_SIDE_TASKS:
                raise ServiceError(
                    "overloaded", "Slowdown: too many are looking into the model; try again",
                    retry_after=1.0,
                )  # fmt: skip
            self._side_tasks.append(side_task)
            self._changed.notify_all()

    def withdraw_side_task(self, side_task: SideTask) -> None:
        """Remove a cancelled side task."""
        with self._changed:
            if side_task in self._side_tasks:
                self._side_tasks.remove(side_task)

    def take(self) -> Batch[Task, Result] | SideTask | None:
        """Wait for the next batch or side task; None: the queue is closed and empty."""
        with self._changed:
            thread = threading.get_ident()
            done = self._running.pop(thread, NO_BATCH)
            others = sum(each.num_requests for each in self._running.values())
            self._running[thread] = NO_BATCH
            num_clients = self._waiting.num_requests + others + done.num_requests
            num_expected = math.ceil(num_clients / max(2, self.num_threads))
            pause = max(self._wait, (time.monotonic() - done.began) / PAUSE_SHARE)
            taken = self._wait_for_work(num_expected, pause if self._wait else 0.0)
            if isinstance(taken, Batch):
                num_requests = taken.count_requests()
                self._running[thread] = RunningBatch(
                    taken.num_tokens, num_requests, time.monotonic()
                )
            return taken

    def close(self) -> None:
        """Close the queue; threads end when it is empty."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def record_speed(self, num_tokens: int, seconds: float) -> None:
        """Update the moving average of the translation speed."""
        self._recent_tokens = SPEED_DECAY * self._recent_tokens + num_tokens
        self._recent_seconds = SPEED_DECAY * self._recent_seconds + seconds

    def has_room(self, owner: str, cost: int) -> bool:
        """Return whether the queue accepts more subwords of a client.

        Returns
        -------
        bool
            True if nothing waits, or there is room. The last quarter of it is for clients of which
            no more than a quarter waits.
        """
        if not self._waiting:
            return True
        most = float(self._queue_tokens)
        if self._recent_seconds:
            most = min(most, max(self._batch_tokens, self._speed() * self._queue_seconds))
        own = self._waiting.cost_of(owner) + cost
        kept = 0.0 if own * RESERVED_SHARE <= most else most / RESERVED_SHARE
        return self._waiting.cost + cost <= most - kept

    def estimate_seconds(self) -> float:
        """Estimate the seconds until the queue is empty."""
        return self._waiting.cost / self._speed() if self._recent_seconds else 1.0

    def _speed(self) -> float:
        """Return the subwords a second of all threads together."""
        return max(1, self.num_threads) * self._recent_tokens / self._recent_seconds

    def _wait_for_work(
        self, num_expected: int, pause: float
    ) -> Batch[Task, Result] | SideTask | None:
        began = time.monotonic()
        while True:
            while not self._waiting and not self._side_tasks and not self._is_closed:
                self._changed.wait()
            if self._side_tasks and (self._is_side_task_next or not self._waiting):
                self._is_side_task_next = False
                return self._side_tasks.popleft()
            if not self._waiting:
                return None
            self._is_side_task_next = True
            self._let_batch_fill(num_expected, max(began, self._oldest), pause)
            if self._waiting:
                return self._gather()

    def _let_batch_fill(self, num_expected: int, began: float, pause: float) -> None:
        """Wait a moment for more requests; longer while they keep arriving."""
        while self._waiting and not self._is_closed:
            until = min(began + MOST_PAUSES * pause, max(began, self._newest) + pause)
            left = until - time.monotonic()
            is_full = self._waiting.cost >= self._batch_tokens
            if is_full or left <= 0 or self._waiting.num_requests >= num_expected:
                return
            self._changed.wait(left)

    def _gather(self) -> Batch[Task, Result]:
        """Take sentences in fair order up to the batch size or the share of one thread."""
        running = sum(each.num_tokens for each in self._running.values())
        share = math.ceil((self._waiting.cost + running) / self.num_threads)
        room = min(self._batch_tokens, share)
        places: list[tuple[PendingRequest[Task, Result], int]] = []
        num_tokens = 0
        while self._waiting and (not places or num_tokens + self._waiting.peek().cost <= room):
            num_tokens += self._waiting.peek().cost
            places.append(self._waiting.take())
        self._oldest = -math.inf  # what is left, if anything, has waited long enough
        self._changed.notify_all()
        return Batch(places=places, num_tokens=num_tokens)
