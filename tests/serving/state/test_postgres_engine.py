"""A state in PostgreSQL: what is wrong is said in one line, without the password."""

import contextlib
import importlib.util
import time

import pytest

from dragoman.errors import OptionError
from dragoman.serving.state.postgres_engine import open_postgres


def refusal(address):
    with pytest.raises(OptionError) as caught:
        open_postgres(address)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_without_its_library_it_is_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert refusal("postgresql://x") == 'state needs psycopg: pip install "dragoman[state]"'


@pytest.mark.parametrize("address", ["postgresql://a:s3cret@h/x?nix=1", "postgresql://[s3cret"])
def test_an_address_that_is_none_is_refused_without_its_password(address):
    pytest.importorskip("psycopg")
    assert refusal(address) == (
        "state is no address that PostgreSQL’s library can read; write "
        "postgresql://USER@HOST/DATABASE"
    )


def test_a_database_that_is_not_there_is_named_without_its_password(cluster):
    port = cluster.port
    address = f"postgresql://dragoman:s3cret@127.0.0.1:{port}/nowhere"
    assert refusal(address) == (
        f"postgresql://127.0.0.1/nowhere: cannot be used (connection failed: connection to server "
        f'at "127.0.0.1", port {port} failed: FATAL:  database "nowhere" does not exist); see that '
        "it runs and that its user may make tables"
    )
    assert "s3cret" not in refusal("postgresql://dragoman:s3cret@127.0.0.1:1/nowhere")


def test_a_database_of_another_encoding_is_refused(cluster):
    address = cluster.make_database("ENCODING 'LATIN1' TEMPLATE template0")
    place = f"postgresql://127.0.0.1/{address.rsplit('/', 1)[1]}"
    assert refusal(address) == f"{place}: its encoding is LATIN1; make a database with UTF8"


def test_a_user_who_may_not_make_tables_is_told(cluster):
    address = cluster.make_database()
    cluster.execute("postgres", "CREATE ROLE guest LOGIN")
    said = refusal(address.replace("//dragoman@", "//guest@"))
    assert "permission denied for schema public" in said
    assert said.endswith("see that it runs and that its user may make tables")


def test_a_server_that_died_within_a_transaction_holds_others_up_for_seconds_at_most(cluster):
    """Its connection stays open, as that of a machine that lost its power does."""
    address = cluster.make_database()
    dead, living = open_postgres(address), open_postgres(address)
    dead.execute("BEGIN")
    dead.execute(dead._engine.begin[1])

    def wait_for_it():
        with living.transaction():
            living.ping()

    with pytest.raises(living.errors, match="canceling statement due to lock timeout"):
        wait_for_it()
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(*living.errors):
            wait_for_it()
            break
    with pytest.raises(dead.errors, match="idle-in-transaction timeout"):
        dead.execute("SELECT 1")
    dead.close()
    living.close()
