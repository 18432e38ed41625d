"""Read sentence pairs from translation memories (TMX 1.1 to 1.4), in a stream."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO
from xml.parsers import expat

from dragoman.errors import DataError

CHUNK_BYTES = 1 << 16
LONGEST_SEGMENT = 1 << 16
"""Characters from which a segment is no sentence; its unit is passed over."""
MOST_VARIANTS = 4
"""Variants of a language that a unit may have on average; more are passed over."""
MOST_NAMED = 8
LONGEST_CODE = 40
MARKUP = frozenset(("bpt", "ept", "ph", "it", "ut"))
"""Inline elements that hold codes of another format; the text in any other one is text."""


def read_tmx(file: IO[bytes], path: Path, languages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Read the pairs of a translation memory.

    Parameters
    ----------
    file : IO[bytes]
        What it holds, unpacked.
    path : Path
        Its name, for messages.
    languages : Sequence[str]
        Codes of source and target.

    Notes
    -----
    Where a unit has several variants of a language, each is paired with each. Entities are
    refused, as no TMX needs any of its own and a few lines of them can fill the memory.
    """
    memory = _Memory(path, languages)
    while chunk := file.read(CHUNK_BYTES):
        memory.parse(chunk)
        yield from memory.take()
    memory.parse(b"", is_last=True)
    yield from memory.take()
    memory.check_languages()


def is_tmx(path: Path) -> bool:
    """Whether a file is called a translation memory, packed or not."""
    return ".tmx" in (each.lower() for each in path.suffixes[-2:])


def matches(code: str, wanted: str) -> bool:
    """Whether a language is the wanted one, or either a variant of the other: “de-AT” and “de”."""
    one, other = (each.lower().replace("_", "-").split("-") for each in (code, wanted))
    return all(mine == theirs for mine, theirs in zip(one, other, strict=False))


class _Memory:
    """The units of a translation memory, as its elements go by."""

    def __init__(self, path: Path, languages: Sequence[str]) -> None:
        self._path = path
        self._languages = languages
        self._seen: dict[str, None] = {}
        self._has_pairs = self._has_root = False
        self._pairs: list[tuple[str, str]] = []
        self._variants: list[tuple[str, str]] = []
        self._language = ""
        self._text: list[str] | None = None
        self._length = self._markup_depth = 0
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.EntityDeclHandler = self._refuse_entity
        parser.SkippedEntityHandler = self._refuse_entity

    def parse(self, chunk: bytes, *, is_last: bool = False) -> None:
        """Parse the next bytes."""
        try:
            self._parser.Parse(chunk, is_last)
        except (expat.ExpatError, LookupError, ValueError) as error:  # an unknown encoding too
            reason = str(error).partition(":")[0]
            raise self._complaint(f"damaged ({reason})", "mend it, or export it again") from None

    def take(self) -> list[tuple[str, str]]:
        """Take the pairs of the units that are complete."""
        taken, self._pairs = self._pairs, []
        return taken

    def check_languages(self) -> None:
        """Refuse a memory without a single pair of the two languages."""
        if not self._has_pairs:
            seen = ", ".join(self._seen) or "none"
            raise DataError(
                f"{self._path}: has no segment in both {self._languages[0]} and "
                f"{self._languages[1]}; its languages: {seen}; give --source-language and "
                "--target-language"
            )

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        kind = name.lower()
        if not self._has_root:
            self._has_root = True
            if kind != "tmx":
                raise self._complaint(
                    f"no TMX file (it begins with <{name[:LONGEST_CODE]}>)", "give another"
                )
        if kind in MARKUP and self._text is not None:
            self._markup_depth += 1
        elif kind == "tu":
            self._variants = []
        elif kind == "tuv":
            self._language = attributes.get("xml:lang") or attributes.get("lang") or ""
            if len(self._seen) < MOST_NAMED:
                self._seen[self._language[:LONGEST_CODE]] = None
        elif kind == "seg":
            self._text, self._length, self._markup_depth = [], 0, 0

    def _end(self, name: str) -> None:
        kind = name.lower()
        if kind in MARKUP and self._text is not None:
            self._markup_depth -= 1
        elif kind == "seg" and self._text is not None:
            self._keep_variant("".join(self._text))
            self._text = None
        elif kind == "tu":
            self._pairs += self._pair_variants()
            self._has_pairs |= bool(self._pairs)

    def _add_text(self, text: str) -> None:
        if self._text is None or self._markup_depth:
            return
        self._length += len(text)
        if self._length <= LONGEST_SEGMENT:
            self._text.append(text)

    def _keep_variant(self, text: str) -> None:
        """Keep a segment of either language, unless there are too many or it is too long."""
        is_wanted = any(matches(self._language, each) for each in self._languages)
        has_room = len(self._variants) < 2 * MOST_VARIANTS
        if is_wanted and has_room and self._length <= LONGEST_SEGMENT:
            self._variants.append((self._language, " ".join(text.split())))

    def _pair_variants(self) -> list[tuple[str, str]]:
        """Pair each source variant of the unit with each target variant."""
        sources, targets = (
            [index for index, (code, _) in enumerate(self._variants) if matches(code, wanted)]
            for wanted in self._languages
        )
        return [
            (self._variants[source][1], self._variants[target][1])
            for source in sources
            for target in targets
            if source != target
        ]

    def _refuse_entity(self, name: str, *_: object) -> None:
        raise self._complaint(
            f"uses the entity “{name[:LONGEST_CODE]}”, which TMX does not have",
            "write the text itself",
        )

    def _complaint(self, what: str, remedy: str) -> DataError:
        line = self._parser.CurrentLineNumber
        return DataError(f"{self._path}, line {line}: {what}; {remedy}")
