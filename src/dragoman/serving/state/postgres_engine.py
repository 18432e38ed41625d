"""PostgreSQL, for servers on several machines."""

import contextlib
import importlib.util
import os
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.errors import OptionError
from dragoman.serving.state.database import Connection, Database, describe

if TYPE_CHECKING:
    import psycopg

PREFIXES = ("postgresql://", "postgres://")
_LOCK = 3_708_243_151
# Milliseconds. An address may say otherwise, such as ?connect_timeout=10.
_DEFAULTS = {
    "application_name": "dragoman",
    "client_encoding": "utf8",
    "connect_timeout": "3",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "4000",
}
_SETTINGS = """
SET statement_timeout = 4000;
SET lock_timeout = 3000;
SET idle_in_transaction_session_timeout = 4000;
SET default_transaction_isolation = 'read committed'
"""


class PostgresEngine:
    """Connections to a database.

    Parameters
    ----------
    address : str
        Such as ``postgresql://dragoman@db.example.org/dragoman``.

    Notes
    -----
    A transaction holds a lock that all servers ask for, as a writer of SQLite does. Statements that
    take longer than four seconds fail, and so do transactions whose server has gone.
    """

    clock = "EXTRACT(EPOCH FROM clock_timestamp())::double precision"
    placeholder = "%s"
    begin: Sequence[str] = ("BEGIN", f"SELECT pg_advisory_xact_lock({_LOCK})")
    end: Sequence[str] = ()
    num_threads = 8

    def __init__(self, address: str) -> None:
        import psycopg
        from psycopg import conninfo

        try:
            given = conninfo.conninfo_to_dict(address)
        except psycopg.Error:
            raise OptionError(
                "state is no address that PostgreSQL’s library can read; write "
                "postgresql://USER@HOST/DATABASE"
            ) from None
        self._words = {**_DEFAULTS, **{name: str(value) for name, value in given.items()}}
        place = "/".join(str(given.get(name) or "") for name in ("host", "dbname"))
        self.place = f"postgresql://{place}"
        self.errors: tuple[type[Exception], ...] = (
            psycopg.OperationalError,
            psycopg.InterfaceError,
            psycopg.InternalError,
            psycopg.ProgrammingError,
        )

    def connect(self) -> "psycopg.Connection[Any]":
        """Connect, with limits of time."""
        import psycopg

        # Without prepared statements, which a pooler between could not keep.
        words: dict[str, Any] = {**self._words, "prepare_threshold": None}
        connection = psycopg.connect("", autocommit=True, **words)
        connection.execute(_SETTINGS)
        return connection

    def abort(self, connection: Connection) -> None:
        """Break a connection, whose thread may be waiting for an answer that never comes."""
        with contextlib.suppress(*self.errors, OSError):
            handle = socket.socket(fileno=os.dup(connection.fileno()))  # type: ignore[attr-defined]
            with handle:
                handle.shutdown(socket.SHUT_RDWR)


def open_postgres(address: str) -> Database:
    """Open the state in a database of PostgreSQL, or begin one."""
    if importlib.util.find_spec("psycopg") is None:
        raise OptionError('state needs psycopg: pip install "dragoman[state]"')
    database = Database(PostgresEngine(address))
    try:
        ((encoding,),) = database.execute("SHOW server_encoding")
        if encoding != "UTF8":
            raise OptionError(
                f"{database.place}: its encoding is {encoding}; make a database with UTF8"
            )
        database.prepare()
    except database.errors as error:
        raise OptionError(
            f"{database.place}: cannot be used ({describe(error)}); see that it runs and that its "
            "user may make tables"
        ) from None
    finally:
        database.close()
    return database
