"""Pending requests, batches and side tasks of a model queue."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.serving.service_types import Client

Task = TypeVar("Task")
Result = TypeVar("Result")


class RunningBatch(NamedTuple):
    """The batch that a thread is translating: size, number of requests, start time."""

    num_tokens: int
    num_requests: int
    began: float


NO_BATCH = RunningBatch(0, 0, math.inf)


@dataclass(eq=False, kw_only=True)
class PendingRequest(Generic[Task, Result]):
    """Sentences of one request with a future for their translations.

    Parameters
    ----------
    client : Client
        Who asks.
    tasks : Sequence[Task]
        The sentences.
    costs : Sequence[int]
        Their subwords.
    loop : asyncio.AbstractEventLoop
        Where the result is awaited.
    """

    client: Client
    tasks: Sequence[Task]
    costs: Sequence[int]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[list[Result]]" = field(init=False)
    results: list[Result | None] = field(init=False)
    num_missing: int = field(init=False)

    def __post_init__(self) -> None:
        self.done = self.loop.create_future()
        self.results = [None] * len(self.tasks)
        self.num_missing = len(self.tasks)

    def set_result(self, index: int, result: Result | Exception) -> None:
        """Set the result of one sentence; call on the event loop only."""
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
            return
        self.results[index] = result
        self.num_missing -= 1
        if not self.num_missing:
            self.done.set_result(self.results)  # type: ignore[arg-type]


@dataclass(frozen=True, kw_only=True)
class Batch(Generic[Task, Result]):
    """Sentences that are translated together.

    Parameters
    ----------
    places : list[tuple[PendingRequest, int]]
        Pending requests and indices of their sentences.
    num_tokens : int
        Their subwords.
    """

    places: list[tuple[PendingRequest[Task, Result], int]]
    num_tokens: int

    def tasks(self) -> list[Task]:
        """List the sentences."""
        return [pending.tasks[index] for pending, index in self.places]

    def count_requests(self) -> int:
        """Count the distinct requests."""
        return len({id(pending) for pending, _ in self.places})


@dataclass(eq=False, kw_only=True)
class SideTask:
    """A function to run on the model's thread between batches.

    Parameters
    ----------
    work : Callable[[], Any]
        What to do.
    loop : asyncio.AbstractEventLoop
        Where the result is awaited.
    """

    work: Callable[[], Any]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[Any]" = field(init=False)

    def __post_init__(self) -> None:
        self.done = self.loop.create_future()

    def set_result(self, result: Any) -> None:  # noqa: ANN401
        """Set the result; call on the event loop only."""
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)
