"""A database that is away or frozen stalls nobody; what is owed is paid when it is back."""

import asyncio
import logging
import threading
import time

import pytest

from dragoman.serving.http.api_keys import ApiKeys
from dragoman.serving.service_types import Client, ServiceError
from dragoman.serving.state import database_threads as module
from dragoman.serving.state.server_state import open_state

ALICE = Client(name="key alice", characters_per_month=100, has_key=True)
MESSAGE = "the state of this server cannot be reached; try again"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.05)


@pytest.fixture
def url(cluster):
    return cluster.make_database()


@pytest.fixture
def state(url):
    state = open_state(url)
    yield state
    state.close()


async def refused(call):
    with pytest.raises(ServiceError) as caught:
        await call
    assert (caught.value.kind, caught.value.message) == ("not_ready", MESSAGE)
    assert caught.value.retry_after == module.RETRY_SECONDS


async def wait_for(condition):
    until = time.monotonic() + 60
    while not await condition():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)


def test_a_database_that_went_away_is_missed_and_found_again(cluster, state, caplog):
    keys = ApiKeys([], state=state)

    async def act():
        await keys.charge(ALICE, 60)
        cluster.stop()
        try:
            await refused(keys.charge(ALICE, 1))
            await refused(keys.usage(ALICE))
            await refused(state.find_glossaries(state.glossaries.list, "key alice"))
            await refused(state.change_glossaries(state.glossaries.delete, "key alice", "x"))
            assert not await state.check()
            keys.refund(ALICE, 20)  # what was charged before it went
        finally:
            cluster.start()
        await wait_for(state.check)

        async def is_refunded():
            return await keys.usage(ALICE) == (40, 100)

        await wait_for(is_refunded)
        await keys.charge(ALICE, 60)

    with caplog.at_level(logging.WARNING):
        asyncio.run(act())
    said = [record.getMessage() for record in caplog.records]
    assert sum(line.startswith("the state cannot be reached: ") for line in said) == 1
    assert said[-1] == "the state can be reached again"
    assert all("\n" not in line for line in said)


def test_a_refund_that_finds_the_database_away_is_paid_later(cluster, state):
    keys = ApiKeys([], state=state)

    async def act():
        await keys.charge(ALICE, 60)
        cluster.stop()
        try:
            keys.refund(ALICE, 20)  # the first to notice

            async def is_noticed():
                return state._threads._is_away

            await wait_for(is_noticed)
        finally:
            cluster.start()

        async def is_refunded():
            return await state.check() and await keys.usage(ALICE) == (40, 100)

        await wait_for(is_refunded)

    asyncio.run(act())


def test_a_frozen_database_does_not_stall_the_event_loop(cluster, state, monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.5)
    monkeypatch.setattr(module, "GLOSSARY_SECONDS", 0.5)
    keys = ApiKeys([], state=state)

    async def act():
        await keys.charge(ALICE, 1)
        await state.find_glossaries(state.glossaries.list, "key alice")
        cluster.freeze()
        try:
            # If the loop itself waited, it would do so until the database is thawed: for ever.
            asked = [refused(keys.charge(ALICE, 0)) for _ in range(30)]
            reading = state.find_glossaries(state.glossaries.list, "key alice")
            await asyncio.gather(*asked, refused(reading))
            assert not await state.check()
        finally:
            cluster.thaw()
        await wait_for(state.check)
        assert (await keys.usage(ALICE))[0] >= 1
        await state.find_glossaries(state.glossaries.list, "key alice")

    asyncio.run(act())


def test_a_connection_that_is_cut_is_made_anew(cluster, url, state):
    keys = ApiKeys([], state=state)

    async def act():
        await keys.charge(ALICE, 1)
        cluster.execute(
            "postgres",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            f"WHERE datname = '{url.rsplit('/', 1)[1]}'",
        )
        await refused(keys.charge(ALICE, 1))
        await wait_for(state.check)
        assert await keys.usage(ALICE) == (1, 100)

    asyncio.run(act())


def test_what_succeeds_after_its_caller_has_gone_is_undone(place):
    """Of a charge whose client has gone nothing stays."""
    state = open_state(place)
    keys = ApiKeys([], state=state)
    goes_on = threading.Event()
    charge = state.counts.charge

    def charge_slowly(*arguments):
        assert goes_on.wait(60)
        return charge(*arguments)

    state.counts.charge = charge_slowly

    async def act():
        task = asyncio.create_task(keys.charge(ALICE, 70))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()

        async def is_undone():
            await keys.charge(ALICE, 1)  # after which the first is over, on one thread
            return await keys.usage(ALICE) != (71, 100)

        await wait_for(is_undone)

    asyncio.run(act())
    state.close()
    state = open_state(place)
    assert asyncio.run(ApiKeys([], state=state).usage(ALICE))[0] < 70
    state.close()


def test_at_the_end_what_is_owed_is_paid(place):
    state = open_state(place)
    keys = ApiKeys([], state=state)
    asyncio.run(keys.charge(ALICE, 70))
    for _ in range(50):
        keys.refund(ALICE, 1)
    state.close()
    keys.refund(ALICE, 1)  # too late, but no error
    state = open_state(place)
    assert asyncio.run(ApiKeys([], state=state).usage(ALICE)) == (20, 100)
    state.close()


def test_refunds_that_cannot_be_paid_in_the_end_are_reported(cluster, url, caplog):
    state = open_state(url)
    keys = ApiKeys([], state=state)
    asyncio.run(keys.charge(ALICE, 70))
    cluster.stop()
    try:
        keys.refund(ALICE, 1)
        state.close()
    finally:
        cluster.start()
    assert caplog.messages[-1] == "the state could not be reached: 1 refunds are lost"


def test_a_disk_that_is_full_is_noticed_and_recovered_from(tmp_path):
    """SQLite itself says so, at a limit of pages."""
    state = open_state(str(tmp_path / "state"))
    keys = ApiKeys([], state=state)
    database = state.counts._database
    connect = database._engine.connect
    is_full = True

    def connect_to_little():
        connection = connect()
        if is_full:
            connection.execute("PRAGMA max_page_count = 1")
        return connection

    database._engine.connect = connect_to_little

    async def act():
        nonlocal is_full
        clients = (Client(name=f"key {number:0200}", has_key=True) for number in range(1000))

        async def charge_all():
            for client in clients:
                await keys.charge(client, 1)

        with pytest.raises(ServiceError, match=MESSAGE):
            await charge_all()
        client = next(clients)
        assert not await state.check()
        is_full = False
        await wait_for(state.check)
        await keys.charge(client, 1)
        assert await keys.usage(client) == (1, None)

    asyncio.run(act())
    state.close()
