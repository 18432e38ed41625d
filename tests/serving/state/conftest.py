"""States to test: in memory, in a folder, in PostgreSQL."""

from dataclasses import dataclass

import pytest
from tests.serving.state.postgres_cluster import cluster  # noqa: F401

from dragoman.serving.state.server_state import ServerState, open_state


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Give what `--state` is told."""
    if request.param == "sqlite":
        return str(tmp_path / "state")
    return request.getfixturevalue("cluster").make_database()


@dataclass
class Servers:
    """Two servers that share a state, or in memory one that stands for both."""

    one: ServerState
    other: ServerState
    clock: list[float] | None

    def pass_seconds(self, seconds: float) -> None:
        """Let time pass: in a database, all that is to come is nearer."""
        if self.clock is not None:
            self.clock[0] += seconds
            return
        database = self.one.counts._database
        database.execute("UPDATE dragoman_buckets SET full_until = full_until - ?", seconds)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def servers(request, tmp_path):
    """Give two servers of one state."""
    if request.param == "memory":
        clock = [1000.0]
        state = ServerState(now=lambda: clock[0])
        yield Servers(state, state, clock)
        return
    place = (
        str(tmp_path / "state")
        if request.param == "sqlite"
        else request.getfixturevalue("cluster").make_database()
    )
    both = Servers(open_state(place), open_state(place), None)
    yield both
    both.one.close()
    both.other.close()
