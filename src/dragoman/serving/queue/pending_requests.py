"""What waits for a model, and what it is doing: sentences of requests, batches, other work."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from dragoman.serving.service_types import Client

Task = TypeVar("Task")
Result = TypeVar("Result")


class RunningBatch(NamedTuple):
    """What a thread is translating: subwords, requests that they are of, and since when."""

    num_tokens: int
    num_requests: int
    began: float


NO_BATCH = RunningBatch(0, 0, math.inf)


@dataclass(eq=False, kw_only=True)
class PendingRequest(Generic[Task, Result]):
    """Sentences of one request that one model is to translate.

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
        """Take the result of one sentence; on the loop's thread."""
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
        Of which tickets they are, and their places there.
    num_tokens : int
        Their subwords.
    """

    places: list[tuple[PendingRequest[Task, Result], int]]
    num_tokens: int

    def tasks(self) -> list[Task]:
        """List the sentences."""
        return [pending.tasks[index] for pending, index in self.places]

    def count_requests(self) -> int:
        """Count the requests of which it has sentences."""
        return len({id(pending) for pending, _ in self.places})


@dataclass(eq=False, kw_only=True)
class SideTask:
    """Other work for a model's thread.

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
        """Take the result, on the loop's thread."""
        if self.done.done():
            return
        if isinstance(result, Exception):
            self.done.set_exception(result)
        else:
            self.done.set_result(result)
