"""Atomic writes, reads of ordinary files only, digests, and locks."""

import errno
import json
import os
import re
import shlex
import shutil
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import xxhash

from dragoman.errors import FolderError

try:
    import fcntl
except ImportError:  # Windows: folders are not locked there
    fcntl = None  # type: ignore[assignment]

CHUNK_BYTES = 1 << 20
DIGEST_DIGITS = 32
LOCK_FILE = ".lock"
_LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)\.(?P<kind>new|old)")
# Errors of disks that cannot be written or locked, where no two writers can collide.
_UNLOCKABLE = {errno.EACCES, errno.EROFS, errno.ENOLCK, errno.ENOTSUP, errno.EEXIST, errno.ENOTDIR}


@contextmanager
def written_beside(path: Path) -> Iterator[Path]:
    """Write a file or folder under a temporary name and move it into place when complete.

    Parameters
    ----------
    path : Path
        Where it shall be in the end. A file there is replaced by a file, a folder by a folder.

    Notes
    -----
    The contents are flushed to the disk before the move, so after a crash or a power cut the
    place holds either the old contents or the new. If writing fails, nothing is left behind.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.new")
    former = path.with_name(f".{path.name}.{os.getpid()}.old")
    _put_back(path, former)
    shutil.rmtree(beside, ignore_errors=True)  # left by a killed process with this id
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield beside
        for each in sorted(beside.rglob("*")) if beside.is_dir() else []:
            _flush(each)
        _flush(beside)
        _move(beside, path, former)
        _flush(path.parent)
    except FolderError as error:  # an error of a file within names its final path
        raise FolderError(str(error).replace(str(beside), str(path))) from error
    except OSError as error:
        raise FolderError(
            f"{path}: cannot be written ({error.strerror or error}); free some space or choose "
            "another place, then try again"
        ) from error
    finally:
        _put_back(path, former)
        shutil.rmtree(former, ignore_errors=True)
        shutil.rmtree(beside, ignore_errors=True)
        with suppress(OSError):
            beside.unlink()


def write_file(path: Path, contents: bytes | str) -> None:
    """Write a file atomically."""
    with written_beside(path) as beside:
        beside.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def open_ordinary(path: Path) -> IO[bytes]:
    """Open a file for reading, refusing folders, pipes, sockets and devices.

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


def read_start(path: Path, most_bytes: int) -> bytes:
    """Read the beginning of a file."""
    with open_ordinary(path) as file:
        return file.read(most_bytes)


def read_small(path: Path, most_bytes: int) -> bytes:
    """Read a whole file, refusing more than a number of bytes."""
    with open_ordinary(path) as file:
        parts: list[bytes] = []
        left = most_bytes + 1
        while left and (part := file.read(min(left, CHUNK_BYTES))):
            parts.append(part)
            left -= len(part)
    if not left:
        raise FolderError(f"{path}: has over {most_bytes:,} bytes, more than belong there")
    return b"".join(parts)


def read_bounded(path: Path, most_bytes: int, remedy: str = "get the model again") -> bytes:
    """Read a whole file that should be small, or say why not and what to do."""
    try:
        return read_small(path, most_bytes)
    except OSError as error:
        raise FolderError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None


def digest_of(contents: bytes | memoryview) -> str:
    """Compute the digest that detects damage.

    Returns
    -------
    str
        XXH3 in 128 bits, as hexadecimal digits. It finds accidents at the speed of memory; it is no
        protection against somebody who changes the digest too.
    """
    return xxhash.xxh3_128_hexdigest(contents)


@contextmanager
def locked(folder: Path, wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Lock a folder against other processes while the context lasts.

    Parameters
    ----------
    folder : Path
        The folder; made if missing, and removed again if nothing was put into it.
    wait : Callable[[str], None] | None
        Is told who is there, and the folder is waited for; None: it is refused.

    Notes
    -----
    The system releases the lock when its owner dies, however that happens. On a folder that cannot
    be written, or a disk that knows no locks, nobody is kept out.
    """
    made = [each for each in (folder, *folder.parents) if not each.exists()]
    handle = None
    try:
        handle = _take_lock(folder, wait)
        yield
    finally:
        if handle is not None:
            with suppress(OSError):
                (folder / LOCK_FILE).unlink()
            os.close(handle)
        for each in made:
            with suppress(OSError):
                each.rmdir()


def list_own(folder: Path) -> list[Path]:
    """List a folder without locks and leftovers of killed writers."""
    there = sorted(folder.iterdir()) if folder.is_dir() else []
    return [each for each in there if each.name != LOCK_FILE and not _LEFTOVER.fullmatch(each.name)]


def sweep(folder: Path, *, is_ours: bool = False) -> None:
    """Remove leftovers of killed writers, and restore a folder whose replacement was interrupted.

    Parameters
    ----------
    folder : Path
        Where nothing is being written by this process.
    is_ours : bool
        Whether nobody else writes there, as in a locked folder. If not, what bears the number of
        a living process stays.
    """
    for path in sorted(folder.iterdir()) if folder.is_dir() else []:
        found = _LEFTOVER.fullmatch(path.name)
        if found is None or (not is_ours and _is_another(int(found["pid"]))):
            continue
        if found["kind"] == "old":
            _put_back(path.with_name(found["name"]), path)
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()


def _put_back(path: Path, former: Path) -> None:
    """Undo an interrupted move."""
    if former.exists() and not path.exists():
        former.replace(path)


def _is_another(pid: int) -> bool:
    """Say whether a number is the id of another living process."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


def _take_lock(folder: Path, wait: Callable[[str], None] | None) -> int | None:
    """Open and lock the lock file of a folder; None where that is impossible."""
    if fcntl is None:
        return None
    path, has_told = folder / LOCK_FILE, False
    while True:
        handle = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            assert handle is not None
            owner = _describe_owner(handle)
            if wait is None:
                os.close(handle)
                raise FolderError(
                    f"{folder}: in use by {owner}; wait until it has ended, or name another folder"
                ) from None
            if not has_told:
                wait(f"{folder}: waiting for {owner}")
                has_told = True
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except BaseException:
                os.close(handle)
                raise
        except OSError as error:
            if handle is not None:
                os.close(handle)
            if error.errno in _UNLOCKABLE:
                return None
            raise
        # The former owner has removed the file: a lock on a removed file locks nothing.
        if _is_same_file(path, handle):
            _sign(handle)
            return handle
        os.close(handle)


def _is_same_file(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except OSError:
        return False


def _sign(handle: int) -> None:
    """Write the owner into a lock file."""
    owner = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": shlex.join(sys.argv),
    }
    with suppress(OSError):  # a full disk is no reason to stop: the lock holds without a name
        os.ftruncate(handle, 0)
        os.pwrite(handle, json.dumps(owner).encode(), 0)


def _describe_owner(handle: int) -> str:
    """Describe the owner of a lock."""
    try:
        owner = json.loads(os.pread(handle, CHUNK_BYTES, 0))
        return "process {pid} on {host} since {since} ({command})".format(**owner)
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


def _move(beside: Path, path: Path, former: Path) -> None:
    """Move the new file or folder into place; only a folder replaces a folder."""
    if not (path.is_dir() and beside.is_dir()):
        beside.replace(path)
        return
    path.replace(former)
    beside.replace(path)


def _flush(path: Path) -> None:
    """Flush a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
