"""What sources offer: a model for a pair of languages, and the files that make it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

MOST_BYTES = 4 << 30
"""Of one file: ten times what a big model in float32 takes."""
FILE, BOX = "file", "box"
LOCAL = (FILE, BOX)
"""Sources whose files lie on this machine."""

_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+@-]{0,199}")
_HASH = re.compile(r"[0-9a-fA-F]{64}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]{2,8}){0,2}")


@dataclass(frozen=True, kw_only=True)
class RemoteFile:
    """A file to be downloaded.

    Parameters
    ----------
    url : str
        Where it is; for the box, the name of its archive.
    name : str
        What it is called once it is unpacked.
    size : int | None
        Its bytes, if the source says them.
    sha256 : str | None
        Its SHA-256, likewise.
    unpacked_sha256 : str | None
        The SHA-256 of what it holds, where the source gives that and the file is compressed.
    """

    url: str
    name: str
    size: int | None = None
    sha256: str | None = None
    unpacked_sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A model that a source offers.

    Parameters
    ----------
    source : str
        The source's name.
    source_language : str | None
        Code of the language it translates from; None: what its files say.
    target_language : str | None
        Likewise.
    variant : str
        What distinguishes it from others of the source for the same languages.
    licence : str
        Under which it may be used, as far as the source says.
    attribution : str
        Who made it and is to be named.
    scores : Mapping[str, str]
        What was published of its quality.
    size : int | None
        Bytes to download, perhaps about.
    files : tuple[RemoteFile, ...]
        What to download; none where only the source's manifest knows.
    """

    source: str
    source_language: str | None = None
    target_language: str | None = None
    variant: str = ""
    licence: str = "not stated"
    attribution: str = ""
    scores: Mapping[str, str] = field(default_factory=dict)
    size: int | None = None
    files: tuple[RemoteFile, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether its files lie on this machine; a list from the network never leads to them."""
        return self.source in LOCAL

    @property
    def pair(self) -> str:
        """The languages, as a name."""
        return f"{self.source_language}-{self.target_language}"

    @property
    def num_bytes(self) -> int | None:
        """What there is to download, if that is known."""
        sizes = [each.size for each in self.files]
        known = [each for each in sizes if each is not None]
        return sum(known) if known and len(known) == len(sizes) else self.size

    def describe(self) -> str:
        """Describe it in one line: what it is, how large, under which licence, how good."""
        size = "size unknown" if self.num_bytes is None else f"{self.num_bytes / 1e6:.1f} MB"
        scores = [f"{name} {score}" for name, score in self.scores.items()]
        name = f"{self.source} {self.variant}".strip()
        what = f"{self.pair} of {name}" if self.source_language else name
        return "; ".join([what, size, f"licence: {self.licence}", *scores])


def read_file_name(text: object) -> str | None:
    """Take a plain file name from a manifest, or from the end of a URL or path."""
    last = PurePosixPath(unquote(urlsplit(text).path)).name if isinstance(text, str) else ""
    return last if _FILE_NAME.fullmatch(last) else None


def read_hash(text: object) -> str | None:
    """Take a SHA-256 from a manifest."""
    return text.lower() if isinstance(text, str) and _HASH.fullmatch(text) else None


def read_size(number: object) -> int | None:
    """Take a size from a manifest."""
    is_size = isinstance(number, int) and not isinstance(number, bool) and 0 < number <= MOST_BYTES
    return number if is_size else None  # type: ignore[return-value]


def read_language(text: object) -> str | None:
    """Take a language code from a manifest."""
    return text if isinstance(text, str) and _LANGUAGE.fullmatch(text) else None


def read_words(text: object, most: int = 200) -> str:
    """Take a few words from a manifest, on one line."""
    line = " ".join(str(text).split()) if isinstance(text, str | int | float) else ""
    return "".join(each if each.isprintable() else "?" for each in line)[:most]
