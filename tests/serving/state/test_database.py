"""Connections by thread, and transactions."""

import threading

import pytest

from dragoman.errors import FolderError
from dragoman.serving.state.database import describe
from dragoman.serving.state.server_state import open_state


@pytest.fixture
def database(place):
    state = open_state(place)
    yield state.counts._database
    state.close()


def count(database):
    return database.execute("SELECT COUNT(*) FROM dragoman_usage")[0][0]


ADD = "INSERT INTO dragoman_usage VALUES (?, 'x', 1)"


def fail_within_a_transaction(database):
    with database.transaction():
        database.execute(ADD, "ann")
        with database.transaction():
            database.execute(ADD, "bob")
        raise RuntimeError


def test_a_transaction_is_done_whole_or_not_at_all(database):
    with pytest.raises(RuntimeError):
        fail_within_a_transaction(database)
    assert count(database) == 0
    with database.transaction():
        database.execute(ADD, "ann")
        with database.transaction():
            database.execute(ADD, "bob")
    assert count(database) == 2


def test_a_transaction_keeps_its_connection(database):
    with database.transaction():
        database.execute(ADD, "ann")
        database.reconnect()  # as when another thread finds the database away
        database.execute(ADD, "bob")
    database.execute(ADD, "cleo")
    assert count(database) == 3


def test_each_thread_has_a_connection(database):
    found = []

    def look():
        found.append(database._connection())
        found.append(database._connection())

    look()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found[0] is found[1]
    assert found[2] is found[3]
    assert found[0] is not found[2]
    database.reconnect()
    look()
    assert found[4] is not found[0]


def test_tables_that_were_emptied_are_noticed(database):
    database.execute("DELETE FROM dragoman_state")
    with pytest.raises(FolderError, match="has lost its tables; put back a copy"):
        database.ping()


def test_errors_are_told_in_a_line():
    assert describe(ValueError("one\ntwo")) == "one"
    assert describe(ValueError()) == "ValueError"
    assert len(describe(ValueError("x" * 999))) == 200
