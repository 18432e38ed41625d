"""Unpack archives of other people's models, within limits and never outside the folder."""

import gzip
import importlib
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple, Protocol

from dragoman.errors import FolderError
from dragoman.files import open_ordinary

MOST_FILES = 1000
MOST_DIRECTORY_BYTES = 16 << 20
MOST_INFLATION, SLACK = 20, 64 << 20
"""How many times larger files may be than their archive, and how many bytes more."""
MOST_BYTES = 16 << 30
MOST_HEADER_BYTES = 1 << 16
"""Of what tar says of one member besides its header; it is read into memory."""
MOST_XZ_MEMORY = 256 << 20
CHUNK_BYTES = 1 << 20
HEAD_BYTES = 512
PACKING = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1
_DAMAGE = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, ValueError, KeyError,
    NotImplementedError, RuntimeError, lzma.LZMAError, MemoryError, gzip.BadGzipFile,
)  # fmt: skip


class _Member(NamedTuple):
    """A file in an archive."""

    name: str
    size: int
    is_plain: bool
    open: Callable[[], IO[bytes] | None]


class _Reader(Protocol):
    """What compressed files are read by."""

    def read(self, size: int, /) -> bytes: ...


def is_archive(path: Path) -> bool:
    """Whether a file is a zip archive or a (compressed) tar archive."""
    if zipfile.is_zipfile(path):
        return True
    try:
        with open_ordinary(path) as file:
            return open_packed(file, path).read(HEAD_BYTES)[257:262] == b"ustar"
    except _DAMAGE:
        return False


def decompress(path: Path, out: Path) -> None:
    """Write what a single file holds that is packed by gzip, xz or zstd; copy any other."""
    room = min(MOST_BYTES, MOST_INFLATION * path.stat().st_size + SLACK)
    try:
        with open_ordinary(path) as file, out.open("xb") as unpacked:
            packed = open_packed(file, path)
            while chunk := packed.read(CHUNK_BYTES):
                room -= len(chunk)
                _check_room(path, room)
                unpacked.write(chunk)
    except _DAMAGE:
        raise FolderError(f"{path}: is damaged; get it again") from None
    except OSError as error:
        raise _cannot_unpack(path, error) from None


def open_packed(file: IO[bytes], path: Path) -> _Reader:
    """Open what a compressed file holds, by its first bytes; the file itself if it is plain."""
    head = file.read(HEAD_BYTES)
    file.seek(0)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file, mode="rb")
    if head.startswith(b"\xfd7zXZ\0"):
        return _Xz(file)
    return _open_zstd(file, path) if head.startswith(b"\x28\xb5\x2f\xfd") else file


def _open_zstd(file: IO[bytes], path: Path) -> _Reader:
    """Open a file that is packed by zstd, which Python reads since 3.14."""
    try:
        zstd = importlib.import_module("compression.zstd")
    except ImportError:
        raise FolderError(
            f"{path}: is packed by zstd, which Python reads from version 3.14 on; unpack it by "
            "“zstd -d”, or get it in another form"
        ) from None
    reader: _Reader = zstd.ZstdFile(file)
    return reader


class _Xz:
    """A file that is packed by xz, read within bounded memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MOST_XZ_MEMORY)

    def read(self, size: int, /) -> bytes:
        """Read no more than a number of bytes."""
        while not self._xz.eof:
            chunk = self._file.read(CHUNK_BYTES) if self._xz.needs_input else b""
            if self._xz.needs_input and not chunk:
                raise EOFError("it ends too early")
            if unpacked := self._xz.decompress(chunk, size):
                return unpacked
        return b""


class Header(tarfile.TarInfo):
    """A member of a tar archive, of whose description little is read into memory."""

    def _proc_member(self, packed: tarfile.TarFile) -> tarfile.TarInfo:
        is_member = self.type in (*tarfile.REGULAR_TYPES, tarfile.DIRTYPE)
        if not is_member and self.size > MOST_HEADER_BYTES:
            raise tarfile.HeaderError("a header is too long")
        return super()._proc_member(packed)  # type: ignore[misc]


def unpack(
    path: Path, out: Path, wanted: Callable[[PurePosixPath], bool] = lambda _: True
) -> list[Path]:
    """Unpack the plain files of a zip or tar archive.

    Parameters
    ----------
    path : Path
        The archive.
    out : Path
        The folder to unpack into.
    wanted : Callable[[PurePosixPath], bool]
        Which files, by their names in the archive.

    Returns
    -------
    list[Path]
        The files.

    Raises
    ------
    FolderError
        If a name leads outside, stands twice or is a link, or if there are more files or bytes
        than a model has. What an archive says of its sizes is not trusted: bytes are counted as
        they come.

    Notes
    -----
    Nobody's rights, owners or times are taken over: a script comes out as a text that cannot be
    run.
    """
    found: list[Path] = []
    try:
        with open_ordinary(path) as file:
            room = min(MOST_BYTES, MOST_INFLATION * os.fstat(file.fileno()).st_size + SLACK)
            for number, member in enumerate(_list_members(path, file)):
                if number >= MOST_FILES:
                    raise FolderError(f"{path}: has more than {MOST_FILES:,} files; get it again")
                name = _check_name(member, path)
                if not wanted(name):
                    room -= member.size  # what stands before others in a tar is read all the same
                    _check_room(path, room)
                    continue
                target = out.joinpath(*name.parts)
                room -= _write(member, target, room, path)
                found.append(target)
    except _DAMAGE:
        raise FolderError(f"{path}: is no zip or tar archive, or damaged; get it again") from None
    except OSError as error:
        raise _cannot_unpack(path, error) from None
    return found


def open_zip(file: IO[bytes]) -> zipfile.ZipFile:
    """Open a zip archive, whose directory must be of a size that can be read."""
    directory = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if directory is None or directory[zipfile._ECD_SIZE] > MOST_DIRECTORY_BYTES:  # type: ignore[attr-defined]
        raise ValueError("no directory, or a huge one")
    return zipfile.ZipFile(file)


def _list_members(path: Path, file: IO[bytes]) -> Iterator[_Member]:
    """List the files of an archive; folders are made where files need them."""
    if zipfile.is_zipfile(file):
        with open_zip(file) as zipped:
            for entry in zipped.infolist():
                kind = stat.S_IFMT(entry.external_attr >> 16)
                is_plain = kind in (0, stat.S_IFREG) and entry.compress_type in PACKING
                if not entry.is_dir():
                    is_plain = is_plain and not entry.flag_bits & _ENCRYPTED
                    yield _Member(
                        entry.filename, entry.file_size, is_plain, partial(zipped.open, entry)
                    )
        return
    file.seek(0)
    stream: Any = open_packed(file, path)
    with tarfile.open(fileobj=stream, mode="r|", tarinfo=Header) as packed:
        for item in packed:
            if not item.isdir():
                is_plain = item.isreg() and not item.issparse()
                yield _Member(item.name, item.size, is_plain, partial(packed.extractfile, item))


def _check_name(member: _Member, path: Path) -> PurePosixPath:
    """Check that a file stays within the folder that it is unpacked into."""
    shown = member.name[:100]
    name = PurePosixPath(member.name)
    if not member.is_plain:
        raise FolderError(f"{path}: “{shown}” is a link or no plain file; nothing is unpacked")
    is_outside = name.is_absolute() or ".." in name.parts or not name.parts
    if is_outside or any(each in member.name for each in ("\\", ":", "\0")):
        raise FolderError(f"{path}: “{shown}” leads outside its folder; nothing is unpacked")
    return name


def _write(member: _Member, target: Path, room: int, path: Path) -> int:
    """Write one file; return its size."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    if target.exists():
        raise FolderError(f"{path}: has “{member.name[:100]}” twice; get it again")
    packed = member.open()
    if packed is None:
        raise ValueError("no plain file")
    with packed, target.open("xb") as out:
        while chunk := packed.read(CHUNK_BYTES):
            written += len(chunk)
            _check_room(path, room - written)
            out.write(chunk)
    return written


def _cannot_unpack(path: Path, error: OSError) -> FolderError:
    why = error.strerror or "it is no such file"
    return FolderError(f"{path}: cannot be unpacked ({why}); check it and the disk")


def _check_room(path: Path, room: int) -> None:
    if room < 0:
        raise FolderError(
            f"{path}: unpacks to more than {MOST_INFLATION} times its size; it is no model"
        )
