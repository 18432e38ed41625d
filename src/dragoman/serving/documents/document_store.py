"""Store of translated documents in a temporary folder, with expiry."""

import asyncio
import contextlib
import hmac
import math
import os
import secrets
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from starlette.applications import Starlette

from dragoman.serving.documents.documents import Progress, read_document
from dragoman.serving.documents.text_documents import Document
from dragoman.serving.options import ServeOptions
from dragoman.serving.service_types import ServiceError

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # Windows, where what a killed server leaves is left to the system
    flock = None  # type: ignore[assignment]

Status = Literal["queued", "translating", "done", "error"]

PREFIX = "dragoman-served-"
"""Of the names of folders for documents."""
UNPACKED_TIMES = 8
"""How many times larger than it may be sent a file may be when unpacked."""
MOST_DOCUMENTS = 200
"""Documents that are kept at the same time; for another, the client with most loses one."""
MOST_OF_A_CLIENT = 20
"""Documents of one client that are translated at the same time."""
FIRST_SPEED = 200.0
"""Characters a second that are expected before any document was translated."""


@dataclass(kw_only=True, eq=False)
class StoredDocument:
    """State of one document translation.

    Parameters
    ----------
    document_id : str
        A UUID.
    key : str
        Whoever knows it may fetch the document.
    owner : str
        Name of the client.
    name : str
        Of the translated file.
    path : Path
        Where the translated file is, or will be.
    expires : float
        When it is removed, as the store's clock tells time.
    status : Status
        How far it is.
    progress : Progress
        The same in characters.
    started : float
        When it was begun.
    message : str
        What went wrong.
    media_type : str
        Of the translated file.
    """

    document_id: str
    key: str
    owner: str
    name: str
    path: Path
    expires: float
    started: float
    status: Status = "queued"
    progress: Progress = field(default_factory=Progress)
    message: str = ""
    media_type: str = "application/octet-stream"
    task: "asyncio.Task[None] | None" = None


class DocumentStore:
    """Stores translated documents until they expire.

    Parameters
    ----------
    seconds : float
        How long each is kept.
    now : Callable[[], float]
        Tells the seconds since some moment.

    Notes
    -----
    Files are in a temporary folder of the store's own that only its user can read, under names that
    no client chooses. They go when their time is over, and the folder goes with the store. If the
    process is killed, the system releases the folder's lock: `remove_stale_folders` looks for that.
    """

    def __init__(self, seconds: float = 3600.0, now: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._now = now
        self._folder, self._lock = _make_folder()
        self._documents: dict[str, StoredDocument] = {}
        self._speed = FIRST_SPEED
        self._reading = asyncio.Lock()

    @property
    def folder(self) -> Path:
        """Return the folder of the files."""
        return Path(self._folder.name)

    async def read(
        self, name: str, content: bytes, options: ServeOptions, target: str, output: str
    ) -> Document:
        """Parse a file, which becomes one of another kind, on a thread, one file at a time."""
        most = UNPACKED_TIMES * options.max_file_bytes
        async with self._reading:
            return await asyncio.to_thread(
                read_document, name, content, most, target, output=output
            )

    def create(
        self, owner: str, name: str, media_type: str = "application/octet-stream"
    ) -> StoredDocument:
        """Register a new document."""
        self.remove_old()
        busy = [each for each in self._documents.values() if each.status in _BUSY]
        of_owner = sum(each.owner == owner for each in busy)
        has_room = of_owner < MOST_OF_A_CLIENT and self._evict_one()
        if not has_room:
            raise ServiceError(
                "too_many_requests",
                "too many documents are being kept; fetch yours later, or send fewer",
                retry_after=60.0,
            )
        document_id = str(uuid.uuid4())
        document = StoredDocument(
            document_id=document_id,
            key=secrets.token_hex(32).upper(),
            owner=owner,
            name=name,
            media_type=media_type,
            path=self.folder / document_id,
            expires=self._now() + self._seconds,
            started=self._now(),
        )
        self._documents[document_id] = document
        # Runs even if no further request arrives.
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().call_later(self._seconds + 1, self.remove_old)
        return document

    def _evict_one(self) -> bool:
        """Evict one document if the store is full, so that one client cannot fill it.

        The oldest finished document of the client that has most of them is evicted.
        """
        if len(self._documents) < MOST_DOCUMENTS:
            return True
        idle = [each for each in self._documents.values() if each.status not in _BUSY]
        counts = Counter(each.owner for each in idle)
        if not idle:
            return False
        self.remove(max(idle, key=lambda each: counts[each.owner]))  # Of equal ones the first.
        return True

    def finish(self, document: StoredDocument, content: bytes) -> None:
        """Write the translated file and mark the document as done."""
        document.path.write_bytes(content)
        document.status = "done"
        if document.progress.num_done:
            self._speed = document.progress.num_done / max(self._now() - document.started, 1e-3)

    def get(self, document_id: str) -> StoredDocument:
        """Look up a document by its id."""
        self.remove_old()
        document = self._documents.get(document_id)
        if document is None:
            raise ServiceError("not_found", "Document not found")
        return document

    def get_with_key(self, document_id: str, key: str, owner: str) -> StoredDocument:
        """Look up a document by its id, key and owner.

        Returns
        -------
        StoredDocument
            The document; that an id exists is told only to who also knows the key.
        """
        document = self.get(document_id)
        is_right = hmac.compare_digest(document.key.encode(), key.encode("utf-8", "replace"))
        if not is_right or document.owner != owner:
            raise ServiceError("not_found", "Document not found")
        return document

    def estimate_seconds(self, document: StoredDocument) -> int:
        """Estimate the remaining seconds of a document by its speed, or that of the last one."""
        progress = document.progress
        passed = self._now() - document.started
        speed = progress.num_done / passed if progress.num_done and passed else self._speed
        return math.ceil((progress.num_characters - progress.num_done) / speed)

    def remove(self, document: StoredDocument) -> None:
        """Delete a document, finished or not."""
        self._documents.pop(document.document_id, None)
        if document.task is not None:
            document.task.cancel()
        document.path.unlink(missing_ok=True)

    def remove_old(self) -> None:
        """Delete the expired documents."""
        now = self._now()
        for document in list(self._documents.values()):
            if document.expires <= now:
                self.remove(document)

    def close(self) -> None:
        """Delete all documents and the folder."""
        for document in list(self._documents.values()):
            self.remove(document)
        self._folder.cleanup()
        os.close(self._lock)


def find_store(app: Starlette) -> DocumentStore:
    """Return the document store of an application."""
    if not hasattr(app.state, "documents"):
        app.state.documents = DocumentStore()
    store: DocumentStore = app.state.documents
    return store


def remove_stale_folders() -> int:
    """Remove the folders that killed servers left behind.

    Returns
    -------
    int
        How many folders were removed: those of this user whose server no longer holds their lock.
    """
    if flock is None:
        return 0
    num_removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.geteuid():
                    flock(handle, LOCK_EX | LOCK_NB)
                    shutil.rmtree(path)
                    num_removed += 1
            finally:
                os.close(handle)
    return num_removed


def _make_folder() -> "tuple[tempfile.TemporaryDirectory[str], int]":
    """Create the folder and lock it for the lifetime of this process."""
    while True:
        folder = tempfile.TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True)
        if flock is None:
            return folder, os.open(os.devnull, os.O_RDONLY)
        handle = os.open(folder.name, os.O_RDONLY)
        with contextlib.suppress(OSError):  # no locks there: others cannot sweep it either
            flock(handle, LOCK_EX)
        if Path(folder.name).exists():
            return folder, handle
        os.close(handle)  # swept by a server that began between the two calls


_BUSY: tuple[Status, ...] = ("queued", "translating")
