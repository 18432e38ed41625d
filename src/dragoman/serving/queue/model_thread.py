"""Thread that takes batches from a queue and translates them."""

import contextlib
import logging
import threading
import time
from asyncio import AbstractEventLoop
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from dragoman.serving.queue.batching import BatchQueue
from dragoman.serving.queue.pending_requests import Batch, SideTask
from dragoman.serving.service_types import ServiceError

Task = TypeVar("Task")
Result = TypeVar("Result")

_log = logging.getLogger("dragoman.serving")


class ModelThread(Generic[Task, Result]):
    """Translates the batches of a queue.

    Parameters
    ----------
    name : str
        Of the model.
    queue : BatchQueue
        What waits for it.
    work : Callable[[Sequence[Task]], list[Result]]
        Translates sentences of one group.
    group : Callable[[Task], Hashable]
        Says which sentences can be translated together: those of equal groups.
    record_batch : Callable[[int, int, float], None]
        Takes how many sentences and subwords a batch had, and the seconds that it took.
    prepare : Callable[[], None] | None
        What to do first; if it fails, the thread ends.

    Notes
    -----
    If a group of sentences fails, its halves are tried, and so on: whatever made it fail ends up
    alone, and only its request fails. The log says of a failure what kind it was, and nothing of
    the text.
    """

    def __init__(
        self,
        name: str,
        queue: BatchQueue[Task, Result],
        work: Callable[[Sequence[Task]], list[Result]],
        group: Callable[[Task], Hashable],
        record_batch: Callable[[int, int, float], None],
        prepare: Callable[[], None] | None = None,
    ) -> None:
        self._name = name
        self._queue = queue
        self._work = work
        self._group = group
        self._record_batch = record_batch
        self._prepare = prepare
        self._thread = threading.Thread(target=self._run, name=f"model {name}", daemon=True)

    @property
    def is_alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Join the thread, which ends when the queue is closed and empty."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        if self._prepare is not None:
            try:
                self._prepare()
            except Exception as error:  # noqa: BLE001 - whoever waits sees that the thread ended
                _log.error("%s: cannot begin: %s", self._name, type(error).__name__)
                return
        while (next_work := self._queue.take()) is not None:
            if isinstance(next_work, SideTask):
                self._run_side_task(next_work)
            else:
                self._translate(next_work)

    def _run_side_task(self, side_task: SideTask) -> None:
        result: Any
        try:
            result = side_task.work()
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            result = error
        _call_on_loop(side_task.loop, side_task.set_result, result)

    def _translate(self, batch: Batch[Task, Result]) -> None:
        began = time.perf_counter()
        groups: dict[Hashable, list[int]] = {}
        tasks = batch.tasks()
        for place, task in enumerate(tasks):
            groups.setdefault(self._group(task), []).append(place)
        results: dict[int, Result | Exception] = {}
        for places in groups.values():
            found = self._translate_or_bisect([tasks[place] for place in places])
            results.update(zip(places, found, strict=True))
        seconds = time.perf_counter() - began
        self._queue.record_speed(batch.num_tokens, seconds)
        self._record_batch(len(tasks), batch.num_tokens, seconds)
        by_loop: dict[AbstractEventLoop, list[tuple[Any, int, Result | Exception]]] = {}
        for place, (pending, index) in enumerate(batch.places):
            by_loop.setdefault(pending.loop, []).append((pending, index, results[place]))
        for loop, settled in by_loop.items():
            _call_on_loop(loop, _set_results, settled)

    def _translate_or_bisect(self, tasks: Sequence[Task]) -> list[Result | Exception]:
        """Translate sentences; if that fails, bisect to isolate the failing ones."""
        try:
            return [*self._work(tasks)]
        except ServiceError as error:
            return [error] * len(tasks)
        except Exception as error:  # noqa: BLE001 - one request must not take down the others
            kind = type(error).__name__
            _log.error("%s: %d sentences failed together: %s", self._name, len(tasks), kind)
            failure = ServiceError("failed", "the text could not be translated")
            failure.__cause__ = error
        if len(tasks) == 1:
            return [failure]
        middle = len(tasks) // 2
        return [
            *self._translate_or_bisect(tasks[:middle]),
            *self._translate_or_bisect(tasks[middle:]),
        ]


def _call_on_loop(loop: AbstractEventLoop, call: Callable[[Any], None], what: Any) -> None:  # noqa: ANN401
    """Call a function on the event loop, unless it is closed."""
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
        loop.call_soon_threadsafe(call, what)


def _set_results(settled: list[tuple[Any, int, Any]]) -> None:
    """Set the results of pending requests."""
    for pending, index, result in settled:
        pending.set_result(index, result)
