"""A database by SQL: connections by thread, transactions, and the tables of the state."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from dragoman.errors import FolderError

VERSION = 1
"""Of the tables. A state of a newer version is refused."""

_TABLES = (
    """
    CREATE TABLE dragoman_buckets (
        bucket TEXT NOT NULL, client TEXT NOT NULL, full_until DOUBLE PRECISION NOT NULL,
        PRIMARY KEY (bucket, client)
    )
    """,
    """
    CREATE TABLE dragoman_usage (
        client TEXT NOT NULL, month TEXT NOT NULL, characters BIGINT NOT NULL,
        PRIMARY KEY (client, month)
    )
    """,
    """
    CREATE TABLE dragoman_glossaries (
        glossary_id TEXT PRIMARY KEY, owner TEXT NOT NULL, name TEXT NOT NULL,
        created TEXT NOT NULL, revision BIGINT NOT NULL, size BIGINT NOT NULL,
        dictionaries TEXT NOT NULL
    )
    """,
    "CREATE INDEX dragoman_glossaries_by_owner ON dragoman_glossaries (owner, created)",
)


class Connection(Protocol):
    """What the libraries of both offer of a connection."""

    def execute(self, statement: Any, values: Any = (), /) -> Any:  # noqa: ANN401
        """Execute a statement and return its cursor."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Engine(Protocol):
    """What differs between SQLite and PostgreSQL.

    Notes
    -----
    ``place`` names the database in messages, without a password; ``clock`` is the expression of its
    seconds since 1970; ``begin`` starts a transaction that no other runs beside, ``end`` follows
    one; ``errors`` are those that say that the database cannot be used now.
    """

    place: str
    clock: str
    placeholder: str
    begin: Sequence[str]
    end: Sequence[str]
    errors: tuple[type[Exception], ...]
    num_threads: int

    def connect(self) -> Connection:
        """Make a connection."""
        ...

    def abort(self, connection: Connection) -> None:
        """Break a connection that another thread uses."""
        ...


class Database:
    """Executes statements, with one connection for each thread.

    Parameters
    ----------
    engine : Engine
        SQLite or PostgreSQL.

    Notes
    -----
    Statements are written once: ``?`` stands for a value, ``{now}`` for the database's clock. A
    statement outside of a transaction is one by itself.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._own = threading.local()
        self._generation = 0
        self._open: set[Connection] = set()
        self._changing = threading.Lock()
        self.errors = engine.errors
        self.num_threads = engine.num_threads
        self.place = engine.place

    def execute(self, statement: str, *values: object) -> list[Any]:
        """Execute a statement and return its rows."""
        text = statement.replace("{now}", self._engine.clock)
        cursor = self._connection().execute(text.replace("?", self._engine.placeholder), values)
        return [] if cursor.description is None else list(cursor.fetchall())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run the statements of a block as a whole, with no other such block beside them.

        A block within another belongs to that one.
        """
        if getattr(self._own, "pinned", None) is not None:
            yield
            return
        self._own.pinned = self._connection()  # whatever becomes of the others meanwhile
        try:
            for statement in self._engine.begin:
                self.execute(statement)
            yield
            self.execute("COMMIT")
        except BaseException:
            with suppress(*self.errors):
                self.execute("ROLLBACK")
            raise
        finally:
            with suppress(*self.errors):
                for statement in self._engine.end:
                    self.execute(statement)
            self._own.pinned = None

    def prepare(self) -> None:
        """Make the tables where there are none; refuse those of a newer version."""
        with self.transaction():
            self.execute(
                "CREATE TABLE IF NOT EXISTS dragoman_state "
                "(version BIGINT NOT NULL, checked DOUBLE PRECISION NOT NULL)"
            )
            rows = self.execute("SELECT version FROM dragoman_state")
            if not rows:
                for statement in _TABLES:
                    self.execute(statement)
                self.execute("INSERT INTO dragoman_state VALUES (?, {now})", VERSION)
            elif rows[0][0] > VERSION:
                raise FolderError(
                    f"{self.place}: was written by a newer version of Dragoman (state "
                    f"{rows[0][0]}, this one knows {VERSION}); use that version, or another --state"
                )
        self.ping()

    def ping(self) -> None:
        """Write the time, so that it is known that something can be written."""
        if not self.execute("UPDATE dragoman_state SET checked = {now} RETURNING version"):
            raise FolderError(f"{self.place}: has lost its tables; put back a copy")

    def reconnect(self) -> None:
        """Let each thread make a new connection for its next statement."""
        self._generation += 1

    def abort(self) -> None:
        """Break all connections, so that threads that wait for an answer go on."""
        self.reconnect()
        with self._changing:
            connections = list(self._open)
        for connection in connections:
            self._engine.abort(connection)

    def close(self) -> None:
        """Close all connections; no thread may be using one."""
        self.reconnect()
        with self._changing:
            connections, self._open = self._open, set()
        for connection in connections:
            with suppress(*self.errors):
                connection.close()

    def _connection(self) -> Connection:
        """Return this thread's connection; make one where there is none of this generation."""
        pinned: Connection | None = getattr(self._own, "pinned", None)
        if pinned is not None:
            return pinned
        generation: int
        generation, connection = getattr(self._own, "connection", (-1, None))
        if connection is not None and generation == self._generation:
            found: Connection = connection
            return found
        if connection is not None:
            self._own.connection = (-1, None)
            with self._changing:
                self._open.discard(connection)
            with suppress(*self.errors):
                connection.close()
        generation = self._generation
        made = self._engine.connect()
        with self._changing:
            self._open.add(made)
        self._own.connection = (generation, made)
        return made


def describe(error: Exception) -> str:
    """Take the first line of an error."""
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
