"""Writing files so that nothing is ever half there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dragoman.errors import FolderError


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
