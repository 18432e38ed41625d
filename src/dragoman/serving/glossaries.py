"""Glossaries of clients: terms and their translations, their limits, and a store in memory."""

import csv
import functools
import io
import threading
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from dragoman.serving.service_types import ServiceError
from dragoman.serving.term_tree import TermTree, split_words

MOST_GLOSSARIES = 1000
"""How many glossaries a client may keep."""
MOST_CHARACTERS = 2_000_000
"""Characters of all glossaries of a client, and a fifth of those of all clients together."""
CHARACTERS_OF_A_WORD = 10
"""What a word of a term counts besides its own, for the memory that finding it takes."""
MOST_OF_A_TERM = 200
"""Characters of a term."""
MOST_TERMS = 1000
"""Different terms that may occur in the texts of a request."""


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The entries of a glossary for one pair of languages.

    Parameters
    ----------
    source : str
        Code of the language of its terms.
    target : str
        Code of the language of their translations.
    entries : tuple[tuple[str, str], ...]
        Terms and translations.
    """

    source: str
    target: str
    entries: tuple[tuple[str, str], ...]
    _finder: TermTree = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_finder", TermTree([term for term, _ in self.entries]))

    @property
    def pair(self) -> tuple[str, str]:
        """Return the codes of both languages."""
        return self.source, self.target

    @functools.cached_property
    def size(self) -> int:
        """Count the characters of the entries, and what finding them takes."""
        return sum(
            len(term) + len(translation) + CHARACTERS_OF_A_WORD * len(split_words(term))
            for term, translation in self.entries
        )

    def find_terms(self, texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """List the entries whose terms occur in the texts.

        Notes
        -----
        The cost is that of reading the texts, however many terms there are.
        """
        found: dict[int, None] = {}
        for text in texts:
            found.update(dict.fromkeys(self._finder.find(text)))
        if len(found) > MOST_TERMS:
            raise _bad_request(
                f"{len(found):,} terms of the glossary occur, but {MOST_TERMS:,} are the most; "
                "send less text"
            )
        return tuple(self.entries[place] for place in found)

    def merge(self, newer: "Dictionary") -> "Dictionary":
        """Add the entries of another; of two with the same term the newer counts."""
        entries = {term.casefold(): (term, translation) for term, translation in self.entries}
        entries |= {term.casefold(): (term, translation) for term, translation in newer.entries}
        return replace(self, entries=tuple(entries.values()))


@dataclass(frozen=True, kw_only=True)
class StoredGlossary:
    """A glossary that belongs to one client.

    Parameters
    ----------
    glossary_id : str
        A UUID.
    name : str
        What the client calls it.
    dictionaries : tuple[Dictionary, ...]
        Its entries, at most one dictionary for each pair of languages.
    created : datetime
        When it was made, in UTC.
    """

    glossary_id: str
    name: str
    dictionaries: tuple[Dictionary, ...]
    created: datetime

    def find(self, source: str, target: str) -> Dictionary | None:
        """Return the dictionary of a pair of languages, if there is one."""
        return next((each for each in self.dictionaries if each.pair == (source, target)), None)

    @property
    def size(self) -> int:
        """Return the characters that it counts in its owner's room."""
        return len(self.name) + sum(each.size for each in self.dictionaries)


class GlossaryStore:
    """Stores the glossaries of all clients in memory.

    Notes
    -----
    Nobody can see or use a glossary of another client. They are gone when the server ends. Several
    threads may use a store at once; changing one can take a second, and others wait for it.
    """

    def __init__(self) -> None:
        self._of_owner: dict[str, dict[str, StoredGlossary]] = {}
        self._size = 0
        self._changing = threading.Lock()

    def create(
        self, owner: str, *, name: str, dictionaries: tuple[Dictionary, ...]
    ) -> StoredGlossary:
        """Store a glossary."""
        stored = make_glossary(name, dictionaries)
        with self._changing:
            self._put(owner, stored)
        return stored

    def update(
        self, owner: str, glossary_id: str, change: Callable[[StoredGlossary], StoredGlossary]
    ) -> StoredGlossary:
        """Replace a glossary by what a function makes of it."""
        with self._changing:
            changed = change(self.get(owner, glossary_id))
            self._put(owner, changed)
        return changed

    def _put(self, owner: str, stored: StoredGlossary) -> None:
        """Keep a glossary, in place of the one with its id, or raise if there is no room."""
        mine = self._of_owner.get(owner, {})
        old = mine.get(stored.glossary_id)
        growth = stored.size - (0 if old is None else old.size)
        check_room(
            count=len(mine) + (old is None),
            of_owner=sum(each.size for each in mine.values()),
            of_all=self._size,
            growth=growth,
        )
        self._of_owner.setdefault(owner, {})[stored.glossary_id] = stored
        self._size += growth

    def get(self, owner: str, glossary_id: str) -> StoredGlossary:
        """Return a glossary of a client."""
        found = self._of_owner.get(owner, {}).get(read_id(glossary_id))
        if found is None:
            raise no_such_glossary()
        return found

    def list(self, owner: str) -> list[StoredGlossary]:
        """List a client's glossaries."""
        return list(self._of_owner.get(owner, {}).values())

    def delete(self, owner: str, glossary_id: str) -> None:
        """Delete a glossary."""
        with self._changing:
            found = self.get(owner, glossary_id)
            self._size -= found.size
            del self._of_owner[owner][found.glossary_id]
            if not self._of_owner[owner]:
                del self._of_owner[owner]


def make_glossary(name: str, dictionaries: tuple[Dictionary, ...]) -> StoredGlossary:
    """Make a glossary with an id of its own."""
    return StoredGlossary(
        glossary_id=str(uuid.uuid4()),
        name=name,
        dictionaries=dictionaries,
        created=datetime.now(UTC),
    )


def read_id(glossary_id: str) -> str:
    """Parse the id of a glossary."""
    try:
        return str(uuid.UUID(glossary_id))
    except ValueError:
        raise ServiceError("bad_request", "Invalid or missing glossary id") from None


def check_room(*, count: int, of_owner: int, of_all: int, growth: int) -> None:
    """Raise if there is no room for a glossary.

    Parameters
    ----------
    count : int
        Glossaries that its owner would have.
    of_owner : int
        Characters of all that its owner has.
    of_all : int
        Characters of all clients.
    growth : int
        Characters that would be added.
    """
    is_too_much = of_owner + growth > MOST_CHARACTERS or of_all + growth > 5 * MOST_CHARACTERS
    if count > MOST_GLOSSARIES or (growth > 0 and is_too_much):
        raise ServiceError("quota", "no room for another glossary; delete one")


def no_such_glossary() -> ServiceError:
    """Make the error of an id that a client has no glossary with."""
    return ServiceError("not_found", "no glossary has that id; list them")


def read_entries(text: str, form: str) -> tuple[tuple[str, str], ...]:
    """Parse the entries of a glossary.

    Parameters
    ----------
    text : str
        A term and its translation on each line.
    form : str
        “tsv”: with a tab between them; “csv”: with a comma, and quotation marks where needed,
        perhaps followed by the codes of both languages.
    """
    if form not in ("tsv", "csv"):
        raise _bad_request(
            f"Value for 'entries_format' not supported: {form[:80]}; send tsv or csv"
        )
    entries: dict[str, str] = {}
    folded: set[str] = set()
    rows = _csv_rows(text) if form == "csv" else _tsv_rows(text)
    for number, row in rows:
        if len(row) != 2 and not (form == "csv" and len(row) == 4):
            raise _bad_request(
                f"Entry {number} has {len(row)} columns; write a term and its translation"
            )
        term, translation = row[0].strip(), row[1].strip()
        _check_term(term, number)
        _check_term(translation, number)
        if term.casefold() in folded:
            raise _bad_request(f"Entry {number} duplicates source term “{term[:80]}”")
        folded.add(term.casefold())
        entries[term] = translation
    if not entries:
        raise _bad_request("the glossary has no entries; send at least one")
    return tuple(entries.items())


def write_entries(entries: Iterable[tuple[str, str]]) -> str:
    """Format entries as tab-separated lines."""
    return "\n".join("\t".join(each) for each in entries)


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.strip():
            yield number, line.split("\t")


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text, newline=""), strict=True), 1):
            if any(cell.strip() for cell in row):
                yield number, row
    except csv.Error as error:
        raise _bad_request(f"the entries are no CSV: {error}") from None


def _check_term(term: str, number: int) -> None:
    if not term:
        raise _bad_request(f"Entry {number} has an empty term; write one, or leave the line out")
    if len(term) > MOST_OF_A_TERM:
        raise _bad_request(
            f"Entry {number} has a term of {len(term):,} characters; write shorter ones"
        )
    if any(unicodedata.category(each) in ("Cc", "Zl", "Zp") for each in term):
        raise _bad_request(f"Entry {number} has a control character; leave it out")


def _bad_request(message: str) -> ServiceError:
    return ServiceError("bad_request", message)
