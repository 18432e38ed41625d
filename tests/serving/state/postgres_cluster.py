"""A cluster of PostgreSQL of one's own, on loopback, until the tests end."""

import contextlib
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

USER = "dragoman"
DEBIAN = "/usr/lib/postgresql"
"""Where Debian keeps the programs of a server, which are not in the PATH."""


def find_program(name: str) -> str:
    """Find a program of PostgreSQL, or skip the test."""
    newest = sorted(Path(DEBIAN).glob(f"*/bin/{name}"), key=lambda path: path.parts[-3].zfill(4))
    found = shutil.which(name) or (str(newest[-1]) if newest else None)
    if found is None:
        pytest.skip(f"there is no {name}: install Debian's package postgresql")
    return found


class PostgresCluster:
    """A server of PostgreSQL that a test can stop, freeze and start again."""

    def __init__(self):
        pytest.importorskip("psycopg", reason='there is no psycopg: pip install "dragoman[state]"')
        programs = {name: find_program(name) for name in ("initdb", "postgres")}
        self._program = programs["postgres"]
        # It refuses to run as root; Debian's package makes a user for it.
        self._as = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
        self._folder = tempfile.mkdtemp(prefix="dragoman-postgres-")
        if self._as:
            shutil.chown(self._folder, **self._as)
        self.data = f"{self._folder}/data"
        subprocess.run(
            [programs["initdb"], "-D", self.data, "-U", USER, "-A", "trust", "-E", "UTF8",
             "--locale=C", "--no-sync"],
            check=True, cwd=self._folder, stdout=subprocess.DEVNULL, **self._as,
        )  # fmt: skip
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self._process = None
        self._names = itertools.count()
        self.start()

    def url(self, database: str) -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        import psycopg

        words = ["-D", self.data, "-p", str(self.port), "-k", self._folder, "-F"]
        self._process = subprocess.Popen(
            [self._program, *words, "-c", "listen_addresses=127.0.0.1"],
            cwd=self._folder, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **self._as,
        )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=2).close()
                return
            except psycopg.OperationalError:
                assert time.monotonic() < until
                assert self._process.poll() is None
                time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server at once, as a failing machine would."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(30)

    def _signal_all(self, number: int) -> None:
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)

    def freeze(self) -> None:
        """Let it answer nothing, though connections stay."""
        self._signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal_all(signal.SIGCONT)

    def make_database(self, more: str = "") -> str:
        """Make an empty database and return its address."""
        name = f"test{next(self._names)}"
        self.execute("postgres", f"CREATE DATABASE {name} {more}")
        return self.url(name)

    def execute(self, database: str, statement: str) -> list:
        """Execute a statement as its administrator."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return [] if cursor.description is None else cursor.fetchall()

    def close(self) -> None:
        self.thaw()
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster():
    """Give a server of PostgreSQL; skip where there is none."""
    made = PostgresCluster()
    yield made
    made.close()
