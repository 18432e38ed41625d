"""What a state does, whether it is in memory, in SQLite or in PostgreSQL."""

import asyncio
import contextlib
import itertools
import re
import shlex
import shutil
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.cli.text_verbs.test_serve import Process
from tests.serving.asked import Asked
from tests.serving.state.postgres_cluster import find_program

from dragoman.errors import DragomanError
from dragoman.serving import glossaries as limits
from dragoman.serving.glossaries import Dictionary
from dragoman.serving.http.api_keys import WRONG_KEYS_PER_MINUTE, ApiKey, ApiKeys
from dragoman.serving.service_types import Client, ServiceError
from dragoman.serving.state import memory_counts, shared_counts
from dragoman.serving.state.server_state import ServerState, open_state

ALICE = Client(name="key alice", requests_per_minute=6, characters_per_month=100, has_key=True)
BOB = Client(name="key bob", has_key=True)
PASSER_BY = Client(name="192.0.2.7", requests_per_minute=1)


@pytest.fixture
def keys(servers):
    """Give the keys of both servers, in one month."""
    entries = [ApiKey(digest=b"x" * 32, client=ALICE)]
    made = [
        Asked(ApiKeys(entries, state=state, month=lambda: servers.month))
        for state in (servers.one, servers.other)
    ]
    servers.month = (2026, 11)
    return made


def refusal(call, *arguments):
    with pytest.raises(ServiceError) as caught:
        call(*arguments)
    return caught.value


def test_a_minute_s_requests_may_be_spread_over_servers(servers, keys):
    for number in range(6):
        keys[number % 2].charge(ALICE, 1)
    for each in keys:
        error = refusal(each.charge, ALICE, 1)
        assert (error.kind, error.message) == ("too_many_requests", "Slowdown: 6 per 1 minute")
        assert 0 < error.retry_after <= 10
        assert refusal(each.check, ALICE).message == error.message
        assert each.usage(ALICE) == (6, 100)  # what was refused is not counted
    keys[0].charge(BOB, 10**9)
    servers.pass_seconds(10)
    keys[1].charge(ALICE, 1)
    assert refusal(keys[0].charge, ALICE, 1).kind == "too_many_requests"
    servers.pass_seconds(60)
    for _ in range(6):
        keys[0].charge(ALICE, 1)


def test_addresses_and_names_have_buckets_of_their_own(keys):
    keys[0].charge(PASSER_BY, 0)
    keys[0].charge(replace(PASSER_BY, name="192.0.2.8"), 0)
    keys[1].charge(ALICE, 0)
    error = refusal(keys[1].charge, PASSER_BY, 0)
    assert 50 < error.retry_after <= 60


def test_wrong_keys_are_counted_over_servers(keys):
    kinds = [
        refusal(keys[number % 2].authenticate, "wrong", "1.2.3.4").kind
        for number in range(WRONG_KEYS_PER_MINUTE)
    ]
    assert kinds == ["bad_key"] * WRONG_KEYS_PER_MINUTE
    for each in keys:
        assert refusal(each.authenticate, "wrong", "1.2.3.4").kind == "too_many_requests"
        assert refusal(each.authenticate, "wrong", "1.2.3.5").kind == "bad_key"


def test_characters_of_a_month_may_be_spread_over_servers(servers, keys):
    keys[0].charge(ALICE, 60)
    error = refusal(keys[1].charge_characters, ALICE, 41)
    assert (error.kind, error.details) == ("quota", {"limit": 100, "count": 60})
    keys[1].charge_characters(ALICE, 40)
    assert [each.usage(ALICE) for each in keys] == [(100, 100)] * 2
    assert refusal(keys[1].check, ALICE).kind == "quota"
    servers.month = (2026, 12)
    assert [each.usage(ALICE) for each in keys] == [(0, 100)] * 2


def test_more_than_the_whole_quota_is_refused_at_once(keys):
    assert refusal(keys[0].charge, ALICE, 101).details == {"limit": 100, "count": 0}
    assert keys[1].usage(ALICE) == (0, 100)


def wait_until(condition):
    until = threading.Event()
    for _ in range(2000):
        if condition():
            return
        until.wait(0.01)
    raise AssertionError


def test_refunds_are_seen_by_all(keys):
    keys[0].charge(ALICE, 80)
    keys[1].refund(ALICE, 30)
    wait_until(lambda: keys[0].usage(ALICE) == (50, 100))
    keys[0].refund(ALICE, 300)
    wait_until(lambda: keys[1].usage(ALICE) == (0, 100))
    keys[0].refund(PASSER_BY, 5)
    assert keys[0].usage(PASSER_BY) == (0, None)


def test_two_servers_together_never_let_a_client_over_its_quota(keys):
    """Exactly what was granted is counted, and of what was left nobody could be granted more."""
    bob = replace(BOB, characters_per_month=997)

    async def spend(number):
        try:
            await keys[number % 2].asked.charge(bob, 1 + number % 5)
        except ServiceError:
            return 0
        return 1 + number % 5

    async def spend_all():
        return await asyncio.gather(*(spend(number) for number in range(500)))

    granted = sum(asyncio.run(spend_all()))
    assert keys[0].usage(bob) == (granted, 997)
    assert granted == 997


def test_two_servers_together_never_grant_more_requests_than_a_minute_has(keys):
    async def ask(number):
        try:
            await keys[number % 2].asked.charge(ALICE, 0)
        except ServiceError:
            return 0
        return 1

    async def ask_all():
        return await asyncio.gather(*(ask(number) for number in range(40)))

    assert sum(asyncio.run(ask_all())) in (6, 7)  # seven, if ten seconds passed


def test_of_too_many_addresses_the_emptiest_or_least_recent_are_forgotten(servers, monkeypatch):
    monkeypatch.setattr(memory_counts, "MAX_CLIENTS", 3)
    monkeypatch.setattr(shared_counts, "SWEEP_EVERY", 1)
    counts = servers.one.counts
    rates = {"ann": 2, "bob": 20, "cleo": 10, "dan": 3, "eve": 2}
    for name in ("ann", "bob", "cleo", "ann", "dan", "eve"):
        assert counts.count("requests", name, rates[name]) is None
        assert counts.count("wrong keys", name, 20) is None
    assert [counts.wait("requests", name, 1) is None for name in ("bob", "cleo")] == [True] * 2
    waits = [servers.other.counts.wait("requests", name, 1) for name in ("ann", "dan", "eve")]
    assert None not in waits


def make(state, owner="key ann", entries=(("dog", "chien"), ("old dog", "vieux chien"))):
    dictionary = Dictionary(source="en", target="fr", entries=entries)
    return state.glossaries.create(owner, name="mine “ü”", dictionaries=(dictionary,))


def test_a_glossary_of_one_server_is_that_of_another_and_of_its_owner_only(servers):
    first, second = make(servers.one), make(servers.other)
    for state in (servers.one, servers.other):
        assert state.glossaries.list("key ann") == [first, second]
        assert state.glossaries.list("key bob") == []
        assert state.glossaries.get("key ann", first.glossary_id.upper()) == first
        found = state.glossaries.get("key ann", second.glossary_id)
        assert found.dictionaries[0].find_terms(["An old dog."])
        assert refusal(state.glossaries.get, "key bob", first.glossary_id).kind == "not_found"
        assert refusal(state.glossaries.delete, "key bob", first.glossary_id).kind == "not_found"
        assert refusal(state.glossaries.get, "key ann", "not an id").kind == "bad_request"
        assert refusal(state.glossaries.delete, "key ann", "not an id").kind == "bad_request"
    servers.other.glossaries.delete("key ann", first.glossary_id)
    servers.one.glossaries.delete("key ann", second.glossary_id)
    for state in (servers.one, servers.other):
        assert refusal(state.glossaries.get, "key ann", first.glossary_id).kind == "not_found"
        assert state.glossaries.list("key ann") == []


def rename(glossary):
    return replace(glossary, name=glossary.name + "!")


def test_what_one_server_changes_the_other_uses_at_once(servers):
    glossary = make(servers.one)
    assert servers.other.glossaries.get("key ann", glossary.glossary_id) == glossary
    tree = Dictionary(source="en", target="fr", entries=(("tree", "arbre"),))
    changed = servers.one.glossaries.update(
        "key ann",
        glossary.glossary_id,
        lambda old: replace(old, dictionaries=(old.dictionaries[0].merge(tree),)),
    )
    assert len(changed.dictionaries[0].entries) == 3
    assert servers.other.glossaries.get("key ann", glossary.glossary_id) == changed
    assert servers.other.glossaries.list("key ann") == [changed]
    error = refusal(servers.one.glossaries.update, "key bob", glossary.glossary_id, rename)
    assert error.kind == "not_found"


def test_of_changes_at_once_none_is_lost(servers):
    glossary = make(servers.one)

    def change(number):
        store = (servers.one, servers.other)[number % 2].glossaries
        store.update("key ann", glossary.glossary_id, rename)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(change, range(24)))
    found = servers.other.glossaries.get("key ann", glossary.glossary_id)
    assert found.name == glossary.name + "!" * 24


@pytest.mark.parametrize(
    ("limit", "value", "other"),
    [
        ("MOST_GLOSSARIES", 1, "key ann"),
        ("MOST_CHARACTERS", 100, "key ann"),
        ("MOST_CHARACTERS", 20, "key bob"),
    ],
)
def test_room_is_limited_over_servers(servers, monkeypatch, limit, value, other):
    glossary = make(servers.one)
    monkeypatch.setattr(limits, limit, value)
    error = refusal(make, servers.other, other)
    assert (error.kind, error.message) == ("quota", "no room for another glossary; delete one")
    servers.other.glossaries.delete("key ann", glossary.glossary_id)
    monkeypatch.setattr(limits, "MOST_CHARACTERS", 100)
    make(servers.one, other)


def test_a_glossary_grows_only_where_there_is_room(servers, monkeypatch):
    glossary = make(servers.one)
    monkeypatch.setattr(limits, "MOST_CHARACTERS", glossary.size + 20)
    longer = Dictionary(source="en", target="fr", entries=(("tree", "a" * 60),))

    def grow(old):
        return replace(old, dictionaries=(old.dictionaries[0].merge(longer),))

    update = servers.other.glossaries.update
    assert refusal(update, "key ann", glossary.glossary_id, grow).kind == "quota"
    assert servers.one.glossaries.list("key ann") == [glossary]
    assert update("key ann", glossary.glossary_id, rename).name == glossary.name + "!"


def test_servers_that_store_at_once_keep_to_the_room(servers, monkeypatch):
    monkeypatch.setattr(limits, "MOST_GLOSSARIES", 3)

    def keep(number):
        try:
            return make((servers.one, servers.other)[number % 2], f"key {number // 6}")
        except ServiceError:
            return None

    with ThreadPoolExecutor(4) as threads:
        kept = list(threads.map(keep, range(60)))
    assert sum(each is not None for each in kept) == 30
    assert [len(servers.one.glossaries.list(f"key {owner}")) for owner in range(10)] == [3] * 10


def test_all_survives_a_restart(place):
    before = open_state(place)
    keys = Asked(ApiKeys([], state=before))
    keys.charge(ALICE, 30)
    for _ in range(5):
        keys.charge(ALICE, 0)
    keys.refund(ALICE, 10)
    glossary = make(before)
    before.close()
    after = open_state(place)
    keys = Asked(ApiKeys([], state=after))
    assert keys.usage(ALICE) == (20, 100)
    assert refusal(keys.charge, ALICE, 0).kind == "too_many_requests"
    assert after.glossaries.list("key ann") == [glossary]
    after.close()


def test_neither_keys_nor_addresses_nor_wrong_keys_are_written(place):
    state = open_state(place)
    keys = Asked(ApiKeys([ApiKey(digest=b"x" * 32, client=ALICE)], state=state))
    refusal(keys.authenticate, "a wrong key", "192.0.2.77")
    keys.charge(replace(PASSER_BY, name="192.0.2.78"), 0)
    make(state, "192.0.2.79")
    database = state.counts._database
    written = repr([
        database.execute(f"SELECT * FROM dragoman_{table}")
        for table in ("state", "buckets", "usage", "glossaries")
    ])  # fmt: skip
    assert "192.0.2" not in written
    assert "wrong key'" not in written
    assert written.count("address ") == 3
    state.close()


def test_a_state_of_a_newer_version_is_refused(place):
    state = open_state(place)
    state.counts._database.execute("UPDATE dragoman_state SET version = 2")
    state.close()
    with pytest.raises(DragomanError) as caught:
        open_state(place)
    assert str(caught.value).endswith(
        ": was written by a newer version of Dragoman (state 2, this one knows 1); use that "
        "version, or another --state"
    )
    assert len(str(caught.value).splitlines()) == 1


def test_servers_may_begin_a_state_at_once(place):
    with ThreadPoolExecutor(4) as threads:
        states = list(threads.map(open_state, [place] * 8))
    glossary = make(states[0])
    for state in states:
        assert state.glossaries.list("key ann") == [glossary]
        state.close()


def test_without_a_place_all_is_in_memory():
    state = open_state(None)
    assert isinstance(state, ServerState)
    make(state)
    assert open_state(None).glossaries.list("key ann") == []
    assert asyncio.run(state.check())
    state.close()


def test_a_database_can_be_asked_whether_it_is_there(place):
    state = open_state(place)
    assert asyncio.run(state.check())
    state.close()


SERVING = (Path(__file__).parents[3] / "docs" / "serving.md").read_text(encoding="utf-8")
KEYS = """
[alice]
key = "alice-secret"
characters_per_month = 1000
[bob]
key = "bob-secret"
requests_per_minute = 3
[cleo]
key = "cleo-secret"
"""
PAIR = {"source_lang": "EN", "target_lang": "FR"}


@pytest.fixture
def serve(tiny_folder, tmp_path, place):
    """Start servers of one state, as processes of their own."""
    keys = tmp_path / "keys.toml"
    keys.write_text(KEYS, encoding="utf-8")
    with contextlib.ExitStack() as running:

        def start(*words):
            path = tiny_folder.path
            flags = ["--port", "0", "--keys", keys, "--state", place, *words]
            return running.enter_context(Process("serve", path, *flags))

        yield start


def ask(url, method, path, name="alice", **more):
    headers = {"Authorization": f"DeepL-Auth-Key {name}-secret"}
    return httpx.request(method, f"{url}{path}", headers=headers, timeout=60, **more)


def translate(url, text, name="alice", **more):
    return ask(url, "POST", "v2/translate", name, json={"text": [text], **PAIR, **more})


def usage(url, name="alice"):
    return ask(url, "GET", "v2/usage", name).json()["character_count"]


@pytest.mark.slow
def test_two_servers_of_a_state_are_one_to_their_clients(serve):
    one, other = serve(), serve()
    assert [translate(each.url, "x" * 450).status_code for each in (one, other)] == [200, 200]
    assert [translate(each.url, "x" * 450).status_code for each in (one, other)] == [456, 456]
    assert [usage(each.url) for each in (one, other)] == [900, 900]
    statuses = [
        translate((one, other)[number % 2].url, "A dog.", "bob").status_code for number in range(5)
    ]
    assert statuses == [200, 200, 200, 429, 429]
    form = {"name": "mine", "entries": "dog\tzèbre", "entries_format": "tsv", **PAIR}
    made = ask(one.url, "POST", "v2/glossaries", "cleo", json=form)
    glossary_id = made.json()["glossary_id"]
    listed = ask(other.url, "GET", "v2/glossaries", "cleo").json()["glossaries"]
    assert [each["glossary_id"] for each in listed] == [glossary_id]
    answer = translate(other.url, "The dog sees.", "cleo", glossary_id=glossary_id)
    assert "zèbre" in answer.json()["translations"][0]["text"]
    assert translate(other.url, "A dog.", glossary_id=glossary_id).status_code == 404
    path = f"v3/glossaries/{glossary_id}"
    assert ask(other.url, "PATCH", path, "cleo", json={"name": "ours"}).status_code == 200
    assert ask(one.url, "GET", path, "cleo").json()["name"] == "ours"
    for each in (one, other):
        assert each.end() == (0, "")
    again = serve()
    assert usage(again.url) == 900
    assert ask(again.url, "DELETE", path, "cleo").status_code == 204


@pytest.mark.slow
def test_a_server_that_is_killed_has_lost_nothing_of_what_it_answered(serve):
    """Six clients ask both until one is killed; what was answered is counted."""
    one, other = serve(), serve()
    sent, answered, made = [], [], []
    is_over = threading.Event()

    def use(number):
        server = (one, other)[number % 2]
        for turn in itertools.count():
            if is_over.is_set():
                return
            text = f"A dog sees {number} and {turn}."
            sent.append(len(text))
            name = f"{number} {turn}"
            form = {"name": name, "entries": "dog\tchien", "entries_format": "tsv", **PAIR}
            try:
                if translate(server.url, text, "cleo").status_code == 200:
                    answered.append(len(text))
                stored = ask(server.url, "POST", "v2/glossaries", "cleo", json=form)
                if stored.status_code == 201:
                    made.append(name)
            except httpx.HTTPError:
                return

    threads = [threading.Thread(target=use, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    while len(answered) < 60:
        time.sleep(0.01)
    one.process.kill()
    one.process.wait()
    enough = len(answered) + 20
    while len(answered) < enough:
        time.sleep(0.01)
    is_over.set()
    for thread in threads:
        thread.join()
    assert sum(answered) <= usage(other.url, "cleo") <= sum(sent)
    listed = ask(other.url, "GET", "v2/glossaries", "cleo").json()["glossaries"]
    assert set(made) <= {each["name"] for each in listed}
    assert usage(serve().url, "cleo") == usage(other.url, "cleo")


@pytest.mark.slow
@pytest.mark.parametrize("place", ["postgresql"], indirect=True)
def test_while_the_database_is_away_servers_say_so_and_go_on_when_it_is_back(serve, cluster):
    server = serve()
    assert translate(server.url, "A dog.").status_code == 200
    line = "the state of this server cannot be reached; try again"
    cluster.stop()
    try:
        for answer in (
            translate(server.url, "A dog."),
            ask(server.url, "GET", "v2/glossaries"),
            ask(server.url, "GET", "v2/usage"),
            ask(server.url, "POST", "v2/document", data=PAIR, files={"file": ("a.txt", b"A dog.")}),
        ):
            assert (answer.status_code, answer.json()) == (503, {"message": line})
            assert answer.headers["retry-after"] == "1"
        answer = httpx.post(f"{server.url}translate", json={"q": "A dog.", "source": "en",
                            "target": "fr", "api_key": "alice-secret"})  # fmt: skip
        assert (answer.status_code, answer.json()) == (503, {"error": line})
        answer = httpx.get(f"{server.url}ready")
        assert answer.status_code == 503
        assert answer.json() == {"status": "not ready", "reason": "the state cannot be reached"}
        assert httpx.get(f"{server.url}api/ready").status_code == 503
        assert httpx.get(f"{server.url}languages").status_code == 200
        assert httpx.get(f"{server.url}health").status_code == 200
    finally:
        cluster.start()
    wait_until(lambda: httpx.get(f"{server.url}ready").status_code == 200)
    assert translate(server.url, "A dog.").status_code == 200
    assert usage(server.url) == 12
    status, words = server.end()
    assert status == 0
    assert [line.split(":")[0] for line in words.splitlines()] == [
        "the state cannot be reached",
        "the state can be reached again",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_the_proxy_of_the_guide_shares_requests_and_keeps_documents_together(serve, tmp_path):
    program = shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")
    if program is None:
        pytest.skip("there is no haproxy: install Debian's package of that name")
    servers = [serve("--proxy", "127.0.0.1") for _ in range(2)]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (text,) = re.findall(r"```haproxy\n(.*?)```", SERVING, re.DOTALL)
    text = text.replace("bind :80", f"bind 127.0.0.1:{port}")
    for number, server in enumerate(servers, start=1):
        text = text.replace(f"127.0.0.1:500{number}", f"127.0.0.1:{server.port}")
    (tmp_path / "haproxy.cfg").write_text(text, encoding="utf-8")
    proxy = subprocess.Popen([program, "-db", "-f", tmp_path / "haproxy.cfg"])
    url = f"http://127.0.0.1:{port}/"

    def is_up():
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{url}languages").status_code == 200
        return False

    try:
        wait_until(is_up)
        for _ in range(6):
            assert translate(url, "A dog.").status_code == 200
        pattern = r'dragoman_requests_total\{route="/v2/translate",status="200"\} (\S+)'
        counts = [
            float(re.findall(pattern, httpx.get(f"{each.url}metrics").text)[0]) for each in servers
        ]
        assert sum(counts) == 6
        assert min(counts) >= 1
        assert usage(url) == 36
        assert httpx.get(f"{url}metrics").status_code == 404
        for _ in range(4):
            form = {"source": "en", "target": "fr", "api_key": "alice-secret"}
            files = {"file": ("a.txt", b"A dog.")}
            answer = httpx.post(f"{url}translate_file", data=form, files=files, timeout=60)
            assert httpx.get(answer.json()["translatedFileUrl"]).status_code == 200
        servers[0].process.kill()
        servers[0].process.wait()
        wait_until(lambda: translate(url, "A dog.").status_code == 200)
    finally:
        proxy.terminate()
        proxy.wait(30)


def backup_commands():
    blocks = re.findall(r"```text\n(.*?)```", SERVING, re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line for line in lines if line.split()[0] in ("python", "pg_dump")]


def test_the_guide_s_copy_of_a_folder_is_a_state(tmp_path):
    (command,) = [each for each in backup_commands() if each.startswith("python")]
    state = open_state(str(tmp_path / "state"))
    glossary = make(state)
    words = [sys.executable, *shlex.split(command)[1:]]
    subprocess.run(words, cwd=tmp_path, check=True)
    state.glossaries.delete("key ann", glossary.glossary_id)
    state.close()
    shutil.move(tmp_path / "copy.sqlite", tmp_path / "state" / "state.sqlite")
    (tmp_path / "state" / "state.sqlite").chmod(0o600)
    state = open_state(str(tmp_path / "state"))
    assert state.glossaries.list("key ann") == [glossary]
    state.close()


def test_the_guide_s_copy_of_a_database_is_a_state(cluster, tmp_path):
    (command,) = [each for each in backup_commands() if each.startswith("pg_dump")]
    url, other = cluster.make_database(), cluster.make_database()
    state = open_state(url)
    glossary = make(state)
    words = shlex.split(re.sub(r"postgresql://\S+", url, command))
    subprocess.run([find_program("pg_dump"), *words[1:]], cwd=tmp_path, check=True)
    state.close()
    copy = ["-q", "-v", "ON_ERROR_STOP=1", "-f", tmp_path / "copy.sql", other]
    subprocess.run([find_program("psql"), *copy], check=True, stdout=subprocess.DEVNULL)
    state = open_state(other)
    assert state.glossaries.list("key ann") == [glossary]
    state.close()
