"""Download files over HTTPS: the only module that opens connections to elsewhere."""

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote, urlsplit

from dragoman.catalogue.offers import MOST_BYTES, RemoteFile, read_hash
from dragoman.errors import DownloadError, FolderError
from dragoman.files import open_ordinary, read_small, write_file

MOST_MANIFEST_BYTES = 64 << 20
MOST_NOTE_BYTES = 1 << 16
READ_BYTES = 1 << 16
TRIES = 4
"""How often a transfer that breaks off is taken up again."""
LONGEST_ADDRESS = 2000
_SAFE = "/:?&=%#+,;@()!*'~$[]"
_RANGE_IS_WRONG = 416

Advance = Callable[[int, int | None], None]
"""Is told how many bytes of a file are there, and of how many."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """How to download.

    Parameters
    ----------
    timeout : float
        Seconds without a byte after which a transfer has broken off.
    digests : Path | None
        A folder in which the SHA-256 of files is remembered whose source gives none.
    trusts_new : bool
        Whether a file may differ from what was downloaded from its address before.
    """

    timeout: float = 30.0
    digests: Path | None = None
    trusts_new: bool = False


def fetch(url: str, network: Network, *, origin: str | None = None) -> bytes:
    """Download a small file, such as a manifest, into memory.

    Parameters
    ----------
    url : str
        Its address.
    network : Network
        How.
    origin : str | None
        The address that led to it; None: a person gave it.
    """
    contents = bytearray()
    try:
        with _open(url, {}, network, origin) as answer:
            while chunk := answer.read(READ_BYTES):
                contents += chunk
                if len(contents) > MOST_MANIFEST_BYTES:
                    raise DownloadError(f"{url}: has over {MOST_MANIFEST_BYTES:,} bytes; refused")
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(url, error) from None
    return bytes(contents)


def download(
    file: RemoteFile, into: Path, network: Network, *, origin: str | None, advance: Advance
) -> str:
    """Download a file, going on where an earlier attempt stopped, and check it.

    Parameters
    ----------
    file : RemoteFile
        What to download, and what is promised of it.
    into : Path
        Where to write it. Until it is complete it is called “.part” there.
    network : Network
        How.
    origin : str | None
        The address that led to it; None: a person gave it.
    advance : Advance
        Is told how far it is.

    Returns
    -------
    str
        Its SHA-256.
    """
    if not into.exists():
        part = _Part(into)
        why: object = None
        for _ in range(TRIES):
            try:
                if _transfer(file, part, network, origin, advance):
                    break
                why = "the connection was closed too early"
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.URLError):
                    raise _unreachable(file.url, error) from None
                why = error
        else:
            raise DownloadError(
                f"{file.url}: breaks off after {part.size:,} bytes ({_explain(why)}); the same "
                "command goes on from there"
            )
        part.complete()
    found = hash_file(into)
    _check_hash(file, found, into, network)
    return found


def hash_file(path: Path) -> str:
    """Compute the SHA-256 of a file."""
    with open_ordinary(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


class _Part:
    """A file of which perhaps only the beginning is there yet."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._path = into.with_name(f"{into.name}.part")
        self._note = into.with_name(f"{into.name}.version")

    @property
    def size(self) -> int:
        """Bytes that are there."""
        return self._path.stat().st_size if self._path.exists() else 0

    @property
    def version(self) -> str | None:
        """What the server called the version of which this is the beginning."""
        with suppress(OSError, ValueError, FolderError):
            return read_small(self._note, MOST_NOTE_BYTES).decode("ascii") or None
        return None

    def restart(self, version: str | None) -> None:
        """Delete the partial download and note the version that is downloaded anew."""
        self._path.unlink(missing_ok=True)
        write_file(self._note, version or "")

    def append(self) -> IO[bytes]:
        """Open it for writing at its end."""
        return self._path.open("ab", buffering=0)

    def complete(self) -> None:
        """Give it its name."""
        self._path.replace(self._into)
        self._note.unlink(missing_ok=True)


def _transfer(
    file: RemoteFile, part: _Part, network: Network, origin: str | None, advance: Advance
) -> bool:
    """Read an answer to its end; say whether the file is complete."""
    have, version = part.size, part.version
    headers = {}
    if have and (version or file.sha256):
        headers["Range"] = f"bytes={have}-"
        if version:
            headers["If-Range"] = version
    try:
        answer = _open(file.url, headers, network, origin)
    except urllib.error.HTTPError as error:
        if error.code != _RANGE_IS_WRONG:
            raise
        part.restart(None)
        return False
    with answer:
        goes_on = answer.status == http.client.PARTIAL_CONTENT
        if goes_on and not str(answer.headers.get("Content-Range")).startswith(f"bytes {have}-"):
            part.restart(None)
            return False
        if not goes_on:
            part.restart(_version_of(answer.headers))
            have = 0
        length = answer.headers.get("Content-Length", "")
        total = have + int(length) if length.isdecimal() and len(length) < 16 else None
        _check_size(file, total, part)
        most = file.size or MOST_BYTES
        with part.append() as written:
            while chunk := answer.read(READ_BYTES):
                have += len(chunk)
                if have > most:
                    part.restart(None)
                    raise DownloadError(f"{file.url}: has over {most:,} bytes; refused")
                _write(written, chunk, file.url)
                advance(have, total or file.size)
    return have == total if total is not None else file.size in (None, have)


def _open(
    url: str, headers: dict[str, str], network: Network, origin: str | None
) -> http.client.HTTPResponse:
    """Ask for an address, through the system's proxies, following redirections that are safe."""
    may_be_plain = origin is None or urlsplit(origin).scheme == "http"
    url = quote(url, safe=_SAFE)
    _check_address(url, may_be_plain=may_be_plain)
    opener = urllib.request.build_opener(_Redirection())
    wanted = {"User-Agent": "dragoman", "Accept-Encoding": "identity"} | headers
    request = urllib.request.Request(url, headers=wanted)
    try:
        answer: http.client.HTTPResponse = opener.open(request, timeout=network.timeout)
    except ValueError as error:
        raise DownloadError(f"{url}: is no address ({error}); check it") from None
    return answer


class _Redirection(urllib.request.HTTPRedirectHandler):
    """Follow redirections, but none from an encrypted connection to a plain one."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Message,
        newurl: str,
    ) -> urllib.request.Request | None:
        """Check the new address."""
        _check_address(newurl, may_be_plain=req.type == "http")
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


def _check_address(url: str, *, may_be_plain: bool) -> None:
    """Refuse addresses that are not https, or http where the user gave one."""
    try:
        parts = urlsplit(url)
        is_address = bool(parts.hostname) and len(url) <= LONGEST_ADDRESS
    except ValueError:
        is_address = False
    if not is_address or parts.scheme not in ("https", "http"):
        raise DownloadError(f"{url[:LONGEST_ADDRESS]}: is no address of the form https://…")
    if parts.scheme == "http" and not may_be_plain:
        raise DownloadError(f"{url}: is not encrypted, and nobody gave this address; refused")


def _check_size(file: RemoteFile, total: int | None, part: _Part) -> None:
    """Refuse a file that is larger than may be, or of another size than was promised."""
    if total is None:
        return
    if file.size is not None and total != file.size:
        part.restart(None)
        raise DownloadError(
            f"{file.url}: has {total:,} bytes, not {file.size:,} as its source says; try again "
            "later, or another --source"
        )
    if total > MOST_BYTES:
        raise DownloadError(f"{file.url}: has over {MOST_BYTES:,} bytes; refused")


def _check_hash(file: RemoteFile, found: str, path: Path, network: Network) -> None:
    """Compare a file with what its source says of it, or with what came from there before."""
    wanted, who = file.sha256, "its source says"
    note = None
    if wanted is None and network.digests is not None:
        key = hashlib.sha256(file.url.encode()).hexdigest()[:32]
        note = network.digests / f"{key}.json"
        wanted, who = _read_note(note), "when it was first downloaded"
    if wanted is not None and found != wanted and not (note and network.trusts_new):
        path.unlink()
        remedy = "--trust-new takes it" if note else "try again later, or another --source"
        raise DownloadError(
            f"{file.url}: has the SHA-256 {found[:16]}…, not {wanted[:16]}… as {who}; {remedy}"
        )
    if note is not None and found != wanted:
        write_file(note, json.dumps({"url": file.url, "sha256": found}) + "\n")


def _read_note(path: Path) -> str | None:
    """Read which SHA-256 a file had before."""
    try:
        plain: Any = json.loads(read_small(path, MOST_NOTE_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return read_hash(plain.get("sha256")) if isinstance(plain, dict) else None


def _version_of(headers: Message) -> str | None:
    """Find what tells whether a file on a server is still the same."""
    tag = headers.get("ETag", "")
    said = tag if tag and not tag.startswith("W/") else headers.get("Last-Modified", "")
    return said if said.isascii() and said.isprintable() and len(said) < LONGEST_ADDRESS else None


def _write(file: IO[bytes], chunk: bytes, place: str) -> None:
    """Write a chunk; raise a one-line error if the disk is full or fails."""
    try:
        left = memoryview(chunk)
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        raise FolderError(
            f"{place}: cannot be saved ({error.strerror}); free some space, then the same command "
            "goes on from there"
        ) from None


def _unreachable(url: str, error: BaseException) -> DownloadError:
    """Explain in one line why nothing comes from an address."""
    if isinstance(error, urllib.error.HTTPError):
        with suppress(OSError):
            error.close()
        remedies = {401: "it is not public", 403: "it is not public", 404: "it is not there"}
        if error.code < http.client.BAD_REQUEST:
            remedies[error.code] = "it redirects to nothing that may be followed"
        remedy = remedies.get(error.code, "try again later")
        return DownloadError(f"{url}: the server answers {error.code}; {remedy}")
    why = error.reason if isinstance(error, urllib.error.URLError) else error
    return DownloadError(
        f"{url}: cannot be reached ({_explain(why)}); check the network and its proxy settings"
    )


def _explain(why: object) -> str:
    """Name an error of the network."""
    said = getattr(why, "strerror", None) or str(why) or type(why).__name__
    return str(said)[:200]
