"""Threads that ask the database, so that the event loop never waits for it."""

import asyncio
import concurrent.futures
import contextlib
import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.serving.service_types import ServiceError
from dragoman.serving.state.database import Database, describe

ANSWER_SECONDS = 5.0
"""How long a request waits for a count."""
GLOSSARY_SECONDS = 30.0
"""How long it waits for glossaries, which take time to read."""
RETRY_SECONDS = 1.0
"""Between attempts to reach a database that is away."""
_GLOSSARY_THREADS = 4

_Found = TypeVar("_Found")
_log = logging.getLogger("dragoman.serving")


class DatabaseThreads:
    """Calls functions that use a database, on threads.

    Parameters
    ----------
    database : Database
        The database.

    Notes
    -----
    When it fails, or does not answer in time, it counts as away: whoever needs it is refused at
    once, until an attempt, one each second, has written to it. What is owed to clients meanwhile is
    remembered.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._errors: tuple[type[Exception], ...] = (*database.errors, DragomanError)
        self._counting = ThreadPoolExecutor(database.num_threads, "state-counts")
        self._reading = ThreadPoolExecutor(_GLOSSARY_THREADS, "state-glossaries")
        self._owed: deque[Callable[[], None]] = deque()
        self._paying = threading.Lock()
        self._is_away = False
        self._recovery: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def call(
        self,
        function: Callable[..., _Found],
        *arguments: Any,  # noqa: ANN401
        undo: Callable[[], None] | None = None,
        is_long: bool = False,
    ) -> _Found:
        """Call a function on a thread.

        Parameters
        ----------
        function : Callable[..., _Found]
            What to call.
        *arguments : Any
            With what.
        undo : Callable[[], None] | None
            Called if the function succeeds after its caller has gone.
        is_long : bool
            Whether it may take seconds by itself.
        """
        self._loop = asyncio.get_running_loop()
        if self._is_away:
            self._start_recovery()
            raise _unreachable()
        future = (self._reading if is_long else self._counting).submit(function, *arguments)
        try:
            async with asyncio.timeout(GLOSSARY_SECONDS if is_long else ANSWER_SECONDS):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            _undo_later(future, undo)
            self._lose("no answer")
            self._database.abort()
            raise _unreachable() from None
        except asyncio.CancelledError:
            _undo_later(future, undo)
            raise
        except self._errors as error:
            self._lose(describe(error))
            raise _unreachable() from None

    def owe(self, function: Callable[[], None]) -> None:
        """Call a function soon, or as soon as the database is back."""
        self._owed.append(function)
        if not self._is_away:
            with contextlib.suppress(RuntimeError):  # closed: it is told there how many are left
                self._counting.submit(self._pay)

    async def check(self) -> bool:
        """Return whether the database can be written to."""
        try:
            await self.call(self._database.ping)
        except ServiceError:
            return False
        return True

    def close(self) -> None:
        """Run the outstanding refunds, if the database answers, and end the threads."""
        pools = (self._counting, self._reading)
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)

        def end() -> None:
            for pool in pools:
                pool.shutdown()
            if self._owed:  # also by what has only now been undone
                self._pay()

        with ThreadPoolExecutor(1) as ending:
            last = ending.submit(end)
            concurrent.futures.wait([last], ANSWER_SECONDS)
            if not last.done():
                self._database.abort()
        self._database.close()
        if self._owed:
            _log.error("the state could not be reached: %d refunds are lost", len(self._owed))

    def _pay(self) -> None:
        """Run the outstanding refunds, if the database can be written to."""
        with self._paying:
            try:
                self._database.ping()
                while self._owed:
                    self._pay_one(self._owed.popleft())
            except self._errors as error:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    if self._loop is not None:
                        self._loop.call_soon_threadsafe(self._lose, describe(error))

    def _pay_one(self, function: Callable[[], None]) -> None:
        try:
            function()
        except self._errors as error:
            # Without a state of SQL the connection was lost: perhaps it has been done.
            if getattr(error, "sqlstate", "") is not None:
                self._owed.appendleft(function)
            raise

    def _lose(self, reason: str) -> None:
        """Count the database as away, and look for it."""
        self._database.reconnect()
        if not self._is_away:
            self._is_away = True
            _log.error("the state cannot be reached: %s", reason)
        self._start_recovery()

    def _start_recovery(self) -> None:
        if self._recovery is None or self._recovery.done():
            self._recovery = asyncio.create_task(self._recover())

    async def _recover(self) -> None:
        """Try to write to the database until that succeeds."""
        while self._is_away:
            await asyncio.sleep(RETRY_SECONDS)
            future = self._counting.submit(self._database.ping)
            try:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await asyncio.wrap_future(future)
                self._is_away = False
            except TimeoutError:
                self._database.abort()
            except self._errors:
                self._database.reconnect()
        _log.error("the state can be reached again")
        self._counting.submit(self._pay)


def _undo_later(future: "Future[Any]", undo: Callable[[], None] | None) -> None:
    """Undo a call that succeeds after its caller has been cancelled or timed out."""
    if undo is not None:
        future.add_done_callback(partial(_undo, undo))


def _undo(undo: Callable[[], None], future: "Future[Any]") -> None:
    if not future.cancelled() and future.exception() is None:
        undo()


def _unreachable() -> ServiceError:
    return ServiceError(
        "not_ready",
        "the state of this server cannot be reached; try again",
        retry_after=RETRY_SECONDS,
    )
