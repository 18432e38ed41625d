"""SQLite in a folder of this machine: opened with checks, shared by its processes."""

import os
import sqlite3
import stat
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from dragoman.errors import FolderError
from dragoman.serving.state.database import Connection, Database

FILE = "state.sqlite"
BUSY_SECONDS = 4.0
"""How long a statement waits for those of other processes."""
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")


class SqliteEngine:
    """Connections to the file in a folder.

    Parameters
    ----------
    folder : Path
        The folder, on a disk of this machine.

    Notes
    -----
    Counts are in the log of SQLite when they are answered, so that a process that is killed loses
    nothing; a power cut may lose those of the last seconds. Transactions, which change glossaries,
    wait for the disk.
    """

    clock = "((julianday('now') - 2440587.5) * 86400.0)"
    placeholder = "?"
    begin: Sequence[str] = ("PRAGMA synchronous = FULL", "BEGIN IMMEDIATE")
    end: Sequence[str] = ("PRAGMA synchronous = NORMAL",)
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)
    num_threads = 1  # SQLite has one writer at a time

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.place = str(self.path)

    def connect(self) -> Connection:
        """Open the file, which must be there."""
        connection = sqlite3.connect(
            f"file:{quote(str(self.path.absolute()))}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def abort(self, connection: Connection) -> None:
        """Interrupt what a connection is doing."""
        if isinstance(connection, sqlite3.Connection):
            connection.interrupt()


def open_folder(folder: Path) -> Database:
    """Open the state in a folder, or begin one; refuse what others can write to.

    Parameters
    ----------
    folder : Path
        The folder; made where there is none, for this user alone.
    """
    _prepare_folder(folder)
    engine = SqliteEngine(folder)
    _prepare_file(engine.path)
    database = Database(engine)
    try:
        (mode,) = database.execute("PRAGMA journal_mode = WAL")[0]
        if mode != "wal":
            raise FolderError(
                f"{folder}: this kind of disk cannot be shared by processes; choose a folder of a "
                "local disk"
            )
        problems = database.execute("PRAGMA quick_check(1)")
        if problems[0][0] != "ok":
            raise _damaged(engine.path)
        database.prepare()
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorname", "").startswith(_DAMAGED):
            raise _damaged(engine.path) from None
        raise FolderError(
            f"{engine.path}: cannot be used ({error}); free some space, make it writable, or "
            "choose another --state"
        ) from None
    finally:
        database.close()
    return database


def _damaged(path: Path) -> FolderError:
    return FolderError(
        f"{path}: is damaged, or not a state; put back a copy, or move it away to begin anew"
    )


def _prepare_folder(folder: Path) -> None:
    """Make the folder, or check that it is this user's alone to write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        info = folder.stat()
    except FileExistsError:
        raise FolderError(f"{folder}: is not a folder; choose another --state") from None
    except OSError as error:
        raise FolderError(
            f"{folder}: cannot be made ({error.strerror}); choose another --state"
        ) from None
    _check_owner(folder, info)


def _prepare_file(path: Path) -> None:
    """Make the file for this user alone, or check that it is."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        handle = os.open(path, flags, 0o600)
    except OSError as error:
        raise FolderError(
            f"{path}: cannot be written ({error.strerror}); free some space, make it writable, or "
            "choose another --state"
        ) from None
    try:
        info = os.fstat(handle)
    finally:
        os.close(handle)
    if not stat.S_ISREG(info.st_mode):
        raise FolderError(f"{path}: is not a file; choose another --state")
    _check_owner(path, info)


def _check_owner(path: Path, info: os.stat_result) -> None:
    """Raise if others may write to a file or folder; on Windows nothing is asked."""
    if not hasattr(os, "geteuid"):
        return
    if info.st_uid != os.geteuid():
        raise FolderError(f"{path}: belongs to another user; choose a folder of your own")
    if info.st_mode & _OTHERS_MAY_WRITE:
        raise FolderError(f"{path}: others can write to it; run “chmod go-w {path}”")
