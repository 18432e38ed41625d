"""Files: written whole or not at all, read only if they are ordinary, and their digests."""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import xxhash

from dragoman.errors import FolderError

CHUNK_BYTES = 1 << 20
DIGEST_DIGITS = 32


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Write a file or folder under another name and move it into place when it is complete.

    Parameters
    ----------
    path : Path
        Where it shall be in the end. A file there is replaced by a file, a folder by a folder.

    Yields
    ------
    Path
        Where to write it: a file to create, or a folder to make.

    Notes
    -----
    The contents are flushed to the disk before the move, so after a crash or a power cut the
    place holds either the old contents or the new. If writing fails, nothing is left behind.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    former = path.with_name(f".{path.name}.{os.getpid()}.old")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        for each in sorted(beside.rglob("*")) if beside.is_dir() else []:
            _flush(each)
        _flush(beside)
        _move(beside, path, former)
        _flush(path.parent)
    except FolderError as error:  # of a file within, which shall be elsewhere in the end
        raise FolderError(str(error).replace(str(beside), str(path))) from error
    except OSError as error:
        raise FolderError(
            f"{path}: cannot be written ({error.strerror or error}); free some space or choose "
            "another place, then try again"
        ) from error
    finally:
        shutil.rmtree(former, ignore_errors=True)
        shutil.rmtree(beside, ignore_errors=True)
        with suppress(OSError):
            beside.unlink()


def write_file(path: Path, contents: bytes | str) -> None:
    """Write a whole file, or leave the old one.

    Parameters
    ----------
    path : Path
        The file.
    contents : bytes | str
        What it shall hold; text is written as UTF-8.
    """
    with written_beside(path) as beside:
        beside.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def open_ordinary(path: Path) -> IO[bytes]:
    """Open a file for reading, refusing folders, pipes, sockets and devices.

    Parameters
    ----------
    path : Path
        The file, or a link to it.

    Returns
    -------
    IO[bytes]
        Without a buffer.

    Notes
    -----
    A pipe would wait for a writer, and a device may never end. An `OSError` of the system, as for a
    missing file, is the caller's to explain.
    """
    if stat.S_ISREG(path.stat().st_mode):
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        file = os.fdopen(os.open(path, flags), "rb", buffering=0)
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return file
        file.close()
    raise FolderError(f"{path}: is a folder, pipe or device, not a file; put the file there")


def read_small(path: Path, most_bytes: int) -> bytes:
    """Read a whole file that should be small.

    Parameters
    ----------
    path : Path
        The file; an `OSError` is the caller's to explain.
    most_bytes : int
        A larger one is refused before it is in memory.

    Returns
    -------
    bytes
        Its contents.
    """
    with open_ordinary(path) as file:
        parts: list[bytes] = []
        left = most_bytes + 1
        while left and (part := file.read(min(left, CHUNK_BYTES))):
            parts.append(part)
            left -= len(part)
    if not left:
        raise FolderError(f"{path}: has over {most_bytes:,} bytes, more than belong there")
    return b"".join(parts)


def digest_of(contents: bytes | memoryview) -> str:
    """Compute the digest by which damage is noticed.

    Parameters
    ----------
    contents : bytes | memoryview
        Any bytes.

    Returns
    -------
    str
        XXH3 in 128 bits, as hexadecimal digits. It finds accidents at the speed of memory; it is no
        protection against somebody who changes the digest too.
    """
    return xxhash.xxh3_128_hexdigest(contents)


def _move(beside: Path, path: Path, former: Path) -> None:
    """Put the new into its place; a folder there gives way to a folder only."""
    if not (path.is_dir() and beside.is_dir()):
        beside.replace(path)
        return
    path.replace(former)
    try:
        beside.replace(path)
    except OSError:
        former.replace(path)
        raise


def _flush(path: Path) -> None:
    """Make the system write a file or folder out to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
