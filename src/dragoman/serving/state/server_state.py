"""The state of a server: counts and glossaries, and how they are asked."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from dragoman.serving.glossaries import GlossaryStore
from dragoman.serving.state.database import Database
from dragoman.serving.state.database_threads import DatabaseThreads
from dragoman.serving.state.memory_counts import MemoryCounts
from dragoman.serving.state.postgres_engine import PREFIXES, open_postgres
from dragoman.serving.state.shared_counts import SharedCounts
from dragoman.serving.state.shared_glossaries import SharedGlossaries
from dragoman.serving.state.sqlite_engine import open_folder

_Found = TypeVar("_Found")


class ServerState:
    """Counts and glossaries, in memory or in a database.

    Parameters
    ----------
    database : Database | None
        Where they are; None: in memory, until the server ends.
    now : Callable[[], float]
        Tells the seconds since some moment, for what is in memory.

    Notes
    -----
    What is in memory is asked at once; a database is asked on threads. Where it is away, those who
    need it are refused with a `ServiceError` “not_ready”.
    """

    def __init__(
        self, database: Database | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads = None if database is None else DatabaseThreads(database)
        self.counts: MemoryCounts | SharedCounts = (
            MemoryCounts(now) if database is None else SharedCounts(database)
        )
        self.glossaries: GlossaryStore | SharedGlossaries = (
            GlossaryStore() if database is None else SharedGlossaries(database)
        )

    async def ask_counts(
        self,
        function: Callable[..., _Found],
        *arguments: Any,  # noqa: ANN401
        undo: Callable[[], None] | None = None,
    ) -> _Found:
        """Call a function that uses the counts; undo it if the caller is cancelled meanwhile."""
        if self._threads is None:
            return function(*arguments)
        return await self._threads.call(function, *arguments, undo=undo)

    async def find_glossaries(
        self,
        function: Callable[..., _Found],
        *arguments: Any,  # noqa: ANN401
    ) -> _Found:
        """Call a function that reads glossaries."""
        if self._threads is None:
            return function(*arguments)
        return await self._threads.call(function, *arguments, is_long=True)

    async def change_glossaries(
        self,
        function: Callable[..., _Found],
        *arguments: Any,  # noqa: ANN401
    ) -> _Found:
        """Call a function that changes glossaries, on a thread: it can take a second."""
        if self._threads is None:
            return await asyncio.to_thread(function, *arguments)
        return await self._threads.call(function, *arguments, is_long=True)

    def call_soon(self, function: Callable[[], None]) -> None:
        """Call a function that uses the counts: now in memory, else when the database is there."""
        if self._threads is None:
            function()
        else:
            self._threads.owe(function)

    async def check(self) -> bool:
        """Return whether the state can be read and written."""
        return self._threads is None or await self._threads.check()

    def close(self) -> None:
        """Finish what is to be written, and close the database."""
        if self._threads is not None:
            self._threads.close()


def open_state(place: str | None) -> ServerState:
    """Open the state in a folder or in a database of PostgreSQL; None: begin one in memory."""
    if place is None:
        return ServerState()
    if place.startswith(PREFIXES):
        return ServerState(open_postgres(place))
    return ServerState(open_folder(Path(place)))
