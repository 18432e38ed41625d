"""Gathering: sentences of all clients, put together into batches for a model's own thread."""

import math
import threading
import time
from collections import deque
from typing import Generic, TypeVar

from dragoman.serving.queue.fair_queue import Turns, Waiting
from dragoman.serving.queue.pending_requests import NO_LOAD, Batch, Beside, Load, Ticket
from dragoman.serving.service_types import ServiceError

TURN_TOKENS = 256
MOST_BESIDE = 8
# The last part of a queue is kept for those who have little in it.
KEPT_SHARE = 4
# A thread pauses for a tenth of the time that its last batch took, to see whether those whom it has
# answered ask again, and again while they do, but not for longer than so many pauses.
PAUSE_SHARE = 10
MOST_PAUSES = 4
# How much of what was measured before the newest batch still counts.
FORGETTING = 0.8

Task = TypeVar("Task")
Result = TypeVar("Result")


class Queue(Generic[Task, Result]):
    """What waits for one model; filled by the loop's thread, emptied by the model's threads.

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
        self._turns: Turns[tuple[Ticket[Task, Result], int]] = Turns(TURN_TOKENS)
        self._beside: deque[Beside] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._oldest = self._newest = 0.0
        self._is_beside_next = True
        self._running: dict[int, Load] = {}
        self._recent_tokens = self._recent_seconds = 0.0

    @property
    def num_sentences(self) -> int:
        """How many sentences wait."""
        return self._turns.num_items

    @property
    def num_tokens(self) -> int:
        """How many subwords wait."""
        return self._turns.cost

    @property
    def num_threads(self) -> int:
        """How many threads empty the queue."""
        return len(self._running)

    def submit(self, ticket: Ticket[Task, Result], *, is_promised: bool = False) -> None:
        """Let the sentences of a request wait, or refuse it.

        Parameters
        ----------
        ticket : Ticket
            The request.
        is_promised : bool
            Whether it was accepted before, as the second half of a way through a third language
            is, and cannot be refused any more.
        """
        cost = sum(ticket.costs)
        with self._changed:
            if not is_promised and not self.has_room(ticket.client.name, cost):
                raise ServiceError(
                    "overloaded",
                    "Slowdown: too many texts are waiting to be translated; try again",
                    retry_after=self.guess_seconds(),
                )
            self._newest = time.monotonic()
            if not self._turns:
                self._oldest = self._newest
            items = [Waiting((ticket, index), cost) for index, cost in enumerate(ticket.costs)]
            self._turns.add(ticket.client.name, ticket, items)
            self._changed.notify_all()

    def withdraw(self, ticket: Ticket[Task, Result]) -> int:
        """Forget the sentences of a request that nobody waits for any more."""
        with self._changed:
            return self._turns.withdraw(ticket.client.name, ticket)

    def submit_beside(self, beside: Beside) -> None:
        """Let other work wait for the model, or refuse it."""
        with self._changed:
            if len(self._beside) >= MOST_BESIDE:
                raise ServiceError(
                    "overloaded", "Slowdown: too many are looking into the model; try again",
                    retry_after=1.0,
                )  # fmt: skip
            self._beside.append(beside)
            self._changed.notify_all()

    def withdraw_beside(self, beside: Beside) -> None:
        """Forget other work that nobody waits for any more."""
        with self._changed:
            if beside in self._beside:
                self._beside.remove(beside)

    def take(self) -> Batch[Task, Result] | Beside | None:
        """Take what the model is to do next, waiting until there is something."""
        with self._changed:
            thread = threading.get_ident()
            done = self._running.pop(thread, NO_LOAD)
            others = sum(each.num_requests for each in self._running.values())
            self._running[thread] = NO_LOAD
            num_clients = self._turns.num_requests + others + done.num_requests
            company = math.ceil(num_clients / max(2, self.num_threads))
            pause = max(self._wait, (time.monotonic() - done.began) / PAUSE_SHARE)
            taken = self._take(company, pause if self._wait else 0.0)
            if isinstance(taken, Batch):
                num_requests = taken.count_requests()
                self._running[thread] = Load(taken.num_tokens, num_requests, time.monotonic())
            return taken

    def close(self) -> None:
        """Let the model's thread end when nothing waits any more."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def note_speed(self, num_tokens: int, seconds: float) -> None:
        """Take note of how long a batch took."""
        self._recent_tokens = FORGETTING * self._recent_tokens + num_tokens
        self._recent_seconds = FORGETTING * self._recent_seconds + seconds

    def has_room(self, owner: str, cost: int) -> bool:
        """Say whether more may wait.

        Returns
        -------
        bool
            True if nothing waits, or there is room. The last quarter of it is for clients of which
            no more than a quarter waits.
        """
        if not self._turns:
            return True
        most = float(self._queue_tokens)
        if self._recent_seconds:
            most = min(most, max(self._batch_tokens, self._speed() * self._queue_seconds))
        own = self._turns.cost_of(owner) + cost
        kept = 0.0 if own * KEPT_SHARE <= most else most / KEPT_SHARE
        return self._turns.cost + cost <= most - kept

    def guess_seconds(self) -> float:
        """Guess how long what waits will take."""
        return self._turns.cost / self._speed() if self._recent_seconds else 1.0

    def _speed(self) -> float:
        """Tell how many subwords a second all threads together translate."""
        return max(1, self.num_threads) * self._recent_tokens / self._recent_seconds

    def _take(self, company: int, pause: float) -> Batch[Task, Result] | Beside | None:
        began = time.monotonic()
        while True:
            while not self._turns and not self._beside and not self._is_closed:
                self._changed.wait()
            if self._beside and (self._is_beside_next or not self._turns):
                self._is_beside_next = False
                return self._beside.popleft()
            if not self._turns:
                return None
            self._is_beside_next = True
            self._wait_for(company, max(began, self._oldest), pause)
            if self._turns:
                return self._gather()

    def _wait_for(self, company: int, began: float, pause: float) -> None:
        """Let a batch fill for a moment, which is longer while more keep coming."""
        while self._turns and not self._is_closed:
            until = min(began + MOST_PAUSES * pause, max(began, self._newest) + pause)
            left = until - time.monotonic()
            is_full = self._turns.cost >= self._batch_tokens
            if is_full or left <= 0 or self._turns.num_requests >= company:
                return
            self._changed.wait(left)

    def _gather(self) -> Batch[Task, Result]:
        """Take sentences by turns until the batch is full, or has what falls to one thread."""
        running = sum(each.num_tokens for each in self._running.values())
        share = math.ceil((self._turns.cost + running) / self.num_threads)
        room = min(self._batch_tokens, share)
        places: list[tuple[Ticket[Task, Result], int]] = []
        num_tokens = 0
        while self._turns and (not places or num_tokens + self._turns.peek().cost <= room):
            num_tokens += self._turns.peek().cost
            places.append(self._turns.take())
        self._oldest = -math.inf  # what is left, if anything, has waited long enough
        self._changed.notify_all()
        return Batch(places=places, num_tokens=num_tokens)
