"""Glossaries of clients in a database that several servers share."""

import json
import threading
from collections.abc import Callable
from datetime import datetime

from dragoman.serving.glossaries import (
    MOST_CHARACTERS,
    Dictionary,
    StoredGlossary,
    check_room,
    make_glossary,
    no_such_glossary,
    read_id,
)
from dragoman.serving.service_types import ServiceError
from dragoman.serving.state.client_names import name_in_state
from dragoman.serving.state.database import Database

MOST_ATTEMPTS = 3
"""Of a change that others are ahead of; then they have to wait."""

_INSERT = """
INSERT INTO dragoman_glossaries
    (glossary_id, owner, name, created, revision, size, dictionaries)
VALUES (?, ?, ?, ?, 1, ?, ?)
"""
_REPLACE = """
UPDATE dragoman_glossaries SET name = ?, size = ?, dictionaries = ?, revision = revision + 1
WHERE glossary_id = ? AND owner = ? AND revision = ? RETURNING revision
"""
_DELETE = "DELETE FROM dragoman_glossaries WHERE glossary_id = ? AND owner = ? RETURNING size"
_REVISION = "SELECT revision FROM dragoman_glossaries WHERE glossary_id = ? AND owner = ?"
_READ = """
SELECT revision, name, created, size, dictionaries FROM dragoman_glossaries
WHERE glossary_id = ? AND owner = ?
"""
_LIST = """
SELECT glossary_id FROM dragoman_glossaries WHERE owner = ? ORDER BY created, glossary_id
"""
_ROOM_OF_OWNER = """
SELECT COUNT(*), COALESCE(SUM(size), 0) FROM dragoman_glossaries WHERE owner = ?
"""
_ROOM_OF_ALL = "SELECT COALESCE(SUM(size), 0) FROM dragoman_glossaries"


class SharedGlossaries:
    """Stores glossaries in a database; does what `GlossaryStore` does.

    Parameters
    ----------
    database : Database
        Where they are.

    Notes
    -----
    Reading a large glossary takes a second, so each is kept in memory until its revision in the
    database is another: as many characters of all as there may be. Room is counted, and what
    changes is written, in a transaction beside which there is no other.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[str, tuple[int, int, StoredGlossary]] = {}
        self._knowing = threading.Lock()

    def create(
        self, owner: str, *, name: str, dictionaries: tuple[Dictionary, ...]
    ) -> StoredGlossary:
        """Store a glossary."""
        stored = make_glossary(name, dictionaries)
        client, size, text = name_in_state(owner), stored.size, _write(stored)
        created = stored.created.isoformat()
        with self._database.transaction():
            self._check_room(client, growth=size, num_more=1)
            self._database.execute(
                _INSERT, stored.glossary_id, client, stored.name, created, size, text
            )
        self._remember(stored, 1, size)
        return stored

    def update(
        self, owner: str, glossary_id: str, change: Callable[[StoredGlossary], StoredGlossary]
    ) -> StoredGlossary:
        """Replace a glossary by what a function makes of it."""
        wanted, client = read_id(glossary_id), name_in_state(owner)
        for _ in range(MOST_ATTEMPTS):
            changed = self._try_to_update(client, wanted, change)
            if changed is not None:
                return changed
        with self._database.transaction():  # so that nobody is faster
            changed = self._try_to_update(client, wanted, change)
        assert changed is not None
        return changed

    def _try_to_update(
        self, client: str, wanted: str, change: Callable[[StoredGlossary], StoredGlossary]
    ) -> StoredGlossary | None:
        """Read, change and replace a glossary; None: another was faster."""
        revision, old_size, old = self._read(client, wanted)
        changed = change(old)
        size, text = changed.size, _write(changed)
        with self._database.transaction():
            self._check_room(client, growth=size - old_size)
            rows = self._database.execute(
                _REPLACE, changed.name, size, text, wanted, client, revision
            )
        if not rows:
            return None
        self._remember(changed, rows[0][0], size)
        return changed

    def get(self, owner: str, glossary_id: str) -> StoredGlossary:
        """Return a glossary of a client."""
        return self._read(name_in_state(owner), read_id(glossary_id))[2]

    def list(self, owner: str) -> list[StoredGlossary]:
        """List a client's glossaries."""
        client = name_in_state(owner)
        found = []
        for (glossary_id,) in self._database.execute(_LIST, client):
            try:
                found.append(self._read(client, glossary_id)[2])
            except ServiceError:
                continue  # deleted since
        return found

    def delete(self, owner: str, glossary_id: str) -> None:
        """Delete a glossary."""
        wanted = read_id(glossary_id)
        with self._database.transaction():
            rows = self._database.execute(_DELETE, wanted, name_in_state(owner))
        if not rows:
            raise no_such_glossary()
        with self._knowing:
            self._known.pop(wanted, None)

    def _check_room(self, client: str, *, growth: int, num_more: int = 0) -> None:
        """Raise if there is no room; in a transaction."""
        ((count, of_owner),) = self._database.execute(_ROOM_OF_OWNER, client)
        ((of_all,),) = self._database.execute(_ROOM_OF_ALL)
        check_room(
            count=count + num_more, of_owner=int(of_owner), of_all=int(of_all), growth=growth
        )

    def _read(self, client: str, glossary_id: str) -> tuple[int, int, StoredGlossary]:
        """Return revision, size and glossary, from memory where the revision is still the same."""
        rows = self._database.execute(_REVISION, glossary_id, client)
        if not rows:
            raise no_such_glossary()
        with self._knowing:
            known = self._known.get(glossary_id)
        if known is not None and known[0] == rows[0][0]:
            return known
        rows = self._database.execute(_READ, glossary_id, client)
        if not rows:
            raise no_such_glossary()
        revision, name, created, size, text = rows[0]
        stored = StoredGlossary(
            glossary_id=glossary_id,
            name=name,
            dictionaries=_read_dictionaries(text),
            created=datetime.fromisoformat(created),
        )
        self._remember(stored, revision, size)
        return revision, size, stored

    def _remember(self, stored: StoredGlossary, revision: int, size: int) -> None:
        """Keep a glossary in memory, and forget those that were remembered first."""
        with self._knowing:
            self._known.pop(stored.glossary_id, None)
            self._known[stored.glossary_id] = (revision, size, stored)
            total = sum(each for _, each, _ in self._known.values())
            while total > 5 * MOST_CHARACTERS:
                total -= self._known.pop(next(iter(self._known)))[1]


def _write(stored: StoredGlossary) -> str:
    plain = [[each.source, each.target, each.entries] for each in stored.dictionaries]
    return json.dumps(plain, ensure_ascii=False)


def _read_dictionaries(text: str) -> tuple[Dictionary, ...]:
    return tuple(
        Dictionary(source=source, target=target, entries=tuple((one, two) for one, two in entries))
        for source, target, entries in json.loads(text)
    )
