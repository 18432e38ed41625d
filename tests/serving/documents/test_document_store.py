import asyncio
import signal
import subprocess
import sys
import tempfile

import pytest

from dragoman.serving.documents import document_store
from dragoman.serving.documents.document_store import PREFIX, DocumentStore, remove_stale_folders
from dragoman.serving.service_types import ServiceError


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def store(clock):
    store = DocumentStore(seconds=60, now=clock)
    yield store
    store.close()
    assert not store.folder.exists()


def test_a_document_is_kept_for_a_while(store, clock):
    document = store.create("ann", "a.txt")
    store.finish(document, b"text")
    clock.now += 59
    assert store.get(document.document_id) is document
    assert (
        store.get_with_key(document.document_id, document.key, "ann").path.read_bytes() == b"text"
    )
    clock.now += 1
    with pytest.raises(ServiceError, match="Document not found") as caught:
        store.get(document.document_id)
    assert caught.value.kind == "not_found"
    assert list(store.folder.iterdir()) == []


def test_a_document_is_removed_also_if_nobody_comes():
    async def wait():
        store = DocumentStore(seconds=-0.99)
        store.finish(store.create("ann", "a.txt"), b"text")
        await asyncio.sleep(0.1)
        return list(store.folder.iterdir())

    assert asyncio.run(wait()) == []


@pytest.mark.parametrize(
    ("key", "owner"), [("wrong", "ann"), ("", "ann"), (None, "bob"), ("\ud800", "ann")]
)
def test_key_and_owner_must_be_right(store, key, owner):
    document = store.create("ann", "a.txt")
    with pytest.raises(ServiceError, match="Document not found"):
        store.get_with_key(document.document_id, document.key if key is None else key, owner)


def test_no_name_of_a_client_is_a_path(store):
    document = store.create("ann", "../../evil.txt")
    store.finish(document, b"text")
    assert [each.name for each in store.folder.iterdir()] == [document.document_id]


def test_keys_differ(store):
    assert len({store.create("ann", "a").key for _ in range(5)}) == 5


def test_how_long_it_will_take(store, clock):
    document = store.create("ann", "a.txt")
    document.progress.num_characters = 600
    assert store.estimate_seconds(document) == 600 / document_store.FIRST_SPEED
    document.progress.num_done = 150
    clock.now += 10
    assert store.estimate_seconds(document) == 30
    document.progress.num_done = 600
    clock.now += 30
    assert store.estimate_seconds(document) == 0
    store.finish(document, b"")
    other = store.create("ann", "b.txt")
    other.progress.num_characters = 31
    assert store.estimate_seconds(other) == 3  # at 15 a second, as the last one


@pytest.mark.parametrize(
    ("limit", "owner"), [("MOST_DOCUMENTS", "bob"), ("MOST_OF_A_CLIENT", "ann")]
)
def test_documents_are_limited(store, monkeypatch, limit, owner):
    document = store.create("ann", "a.txt")
    monkeypatch.setattr(document_store, limit, 1)
    with pytest.raises(
        ServiceError, match="too many documents are being kept; fetch yours"
    ) as caught:
        store.create(owner, "b.txt")
    assert caught.value.kind == "too_many_requests"
    store.remove(document)
    store.create(owner, "b.txt")


def test_a_client_cannot_fill_the_store_for_others(store, monkeypatch):
    monkeypatch.setattr(document_store, "MOST_DOCUMENTS", 4)
    kept = [store.create(owner, "a.txt") for owner in ("bob", "ann", "ann", "ann")]
    for document in kept[:3]:
        store.finish(document, b"")
    new = store.create("cid", "b.txt")
    for document in (kept[0], *kept[2:], new):
        assert store.get(document.document_id) is document
    with pytest.raises(ServiceError, match="Document not found"):
        store.get(kept[1].document_id)
    assert not kept[1].path.exists()


def test_work_on_a_removed_document_ends(store):
    async def work():
        document = store.create("ann", "a.txt")
        document.task = asyncio.create_task(asyncio.sleep(60))
        store.remove(document)
        with pytest.raises(asyncio.CancelledError):
            await document.task

    asyncio.run(work())


KEEPER = """
import sys
from dragoman.serving.documents.document_store import DocumentStore
store = DocumentStore()
store.finish(store.create("ann", "a.txt"), b"text")
print(store.folder, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Give a folder for temporary files that is this test's alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def keep():
    """Start a process that keeps a document, and give its folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", KEEPER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


@pytest.mark.skipif(sys.platform == "win32", reason="no locks of folders")
def test_documents_of_a_killed_server_are_swept_and_those_of_others_are_not(temporary):
    (killed, left), (living, kept) = keep(), keep()
    with killed, living:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        own = DocumentStore()
        other = temporary / "of-somebody-else"
        other.mkdir()
        link = temporary / f"{PREFIX}link"
        link.symlink_to(other)
        paths = {str(each) for each in temporary.iterdir()}
        assert paths == {left, kept, str(own.folder), str(other), str(link)}
        assert remove_stale_folders() == 1
        assert {str(each) for each in temporary.iterdir()} == paths - {left}
        assert len(list(temporary.glob(f"{PREFIX}*/*"))) == 1  # the living server's document
        living.stdin.close()
        living.wait()
    own.close()
    assert {str(each) for each in temporary.iterdir()} == {str(other), str(link)}
