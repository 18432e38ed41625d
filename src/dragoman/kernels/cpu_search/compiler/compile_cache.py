"""Cache compiled functions on disk, so that the next process need not compile them again.

Numba's own cache unpickles whatever lies in its folder, so that one flipped bit ends in a traceback
or a crash, and whoever may write there runs code as the user. Here each entry is one file with a
digest that is checked over the very bytes that are then unpickled, in a folder that only its user
can write to. An entry that cannot be used is compiled anew and replaced.
"""

import functools
import hashlib
import inspect
import logging
import os
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba import cloudpickle
from numba.core import compiler, serialize
from numba.core.caching import _Cache
from numba.core.runtime import rtsys

from dragoman import eight_bits
from dragoman.errors import FolderError
from dragoman.files import digest_of, open_ordinary

OPENING = b"dragoman compiled 1\n"
SUFFIX = ".compiled"
MOST_BYTES = 64 << 20
"""Of an entry; the largest has 1.3 MB."""
MOST_ENTRIES = 512
"""In a folder: those of some seven versions of Dragoman, Numba, Python or processors."""
ABANDONED_AFTER = 3600.0
"""Seconds after which a file that is still being written belongs to a process that was killed."""

_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_log = logging.getLogger("dragoman.kernels")
_told: list[str] = []


class UnusableError(Exception):
    """A folder or an entry of the cache that cannot be used, and why."""


class CompileCache(_Cache):
    """Cache of one compiled function, with the interface that Numba expects.

    Parameters
    ----------
    function : Callable
        The function, before it is compiled.
    is_entry : bool
        Whether no compiled function calls it: then only its machine code is kept.
    """

    def __init__(self, function: Callable, *, is_entry: bool = False) -> None:
        self._function, self._is_entry = function, is_entry
        self.enable()

    @property
    def cache_path(self) -> str | None:
        """Return the folder of the cache; empty if there is none."""
        folder = find_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:  # noqa: ANN401
        """Load a compiled function.

        Returns
        -------
        Any
            Numba's result of compiling it; None if there is none that can be used.
        """
        folder = find_folder() if self._is_enabled else None
        if folder is None:
            return None
        name, key = self._identify(sig, target_context.codegen())
        try:
            contents = read_entry(folder / name, key)
            if contents is None:
                return None
            rtsys.initialize(target_context)  # what machine code calls; types need not be known
            # What was written by this very version, so nothing that can be named goes wrong.
            return compiler.CompileResult._rebuild(target_context, *cloudpickle.loads(contents))
        except Exception as error:  # noqa: BLE001
            why = error if isinstance(error, UnusableError) else f"{type(error).__name__}: {error}"
            _tell(f"{folder / name}: {why}; compiling anew without it")
            return None

    def holds(self, sig: Any, target_context: Any) -> bool:  # noqa: ANN401
        """Say whether a compiled function is in the cache, intact or not."""
        folder = find_folder()
        return (
            folder is not None
            and (folder / self._identify(sig, target_context.codegen())[0]).is_file()
        )

    def save_overload(self, sig: Any, data: Any) -> None:  # noqa: ANN401
        """Write a compiled function to the cache."""
        folder = find_folder() if self._is_enabled else None
        if folder is None or data.lifted or data.library.has_dynamic_globals:
            return
        name, key = self._identify(sig, data.codegen)
        try:
            write_entry(folder / name, key, serialize.dumps(self._reduce(data)))
            remove_oldest(folder, MOST_ENTRIES)
        except OSError as error:
            _tell(
                f"{folder / name}: cannot be written ({error.strerror}), so each start compiles; "
                "remove it, free some space, or choose another folder with NUMBA_CACHE_DIR"
            )

    def _reduce(self, data: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Reduce a compiled function to what can be serialised."""
        (name, kind, (code, module)), *rest = data._reduce()
        if self._is_entry:  # names are all that is asked for
            names = (data.fndesc.llvm_func_name, data.fndesc.llvm_cpython_wrapper_name)
            module = llvmlite.binding.parse_assembly(_define(names)).as_bitcode()
        return ((name, kind, (code, module)), *rest)

    def enable(self) -> None:
        """Switch the cache on, except for nested functions: closures are in no source file."""
        self._is_enabled = self._function.__closure__ is None

    def disable(self) -> None:
        """Switch the cache off."""
        self._is_enabled = False

    def flush(self) -> None:
        """Do nothing: old entries are removed when new ones are written."""

    def _identify(self, signature: object, codegen: Any) -> tuple[str, bytes]:  # noqa: ANN401
        """Return the file name of an entry, and the key of all that it depends on."""
        function = self._function
        place = f"{function.__module__.split('.')[-1]}.{function.__name__}"
        said = (
            hash_sources(Path(inspect.getfile(function))),
            (function.__module__, function.__qualname__, function.__code__.co_firstlineno),
            str(signature),
            codegen.magic_tuple(),  # the processor and its instructions
            (numba.__version__, llvmlite.__version__, sys.version, sys.flags.optimize),
        )
        key = hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest()
        plain = "".join(each if each.isalnum() or each in "._" else "-" for each in place)
        return f"{plain}-{key}{SUFFIX}", key.encode()


def is_kept(function: Any, arguments: Iterable[object]) -> bool:  # noqa: ANN401
    """Say whether a function compiled for these argument types is in the cache."""
    types = tuple(map(function.typeof_pyval, arguments))
    return function._cache.holds(types, function.targetctx)


@functools.cache
def hash_sources(own: Path) -> str:
    """Hash the function's module and all sources of the compiled search."""
    digest = hashlib.blake2b(digest_size=16)
    folders = (Path(__file__).parent.parent, own.parent)
    shared = {Path(eight_bits.__file__), *(each for all_ in folders for each in all_.rglob("*.py"))}
    for path in (*sorted(shared - {own}), own):
        with suppress(OSError):  # of a function that was typed in
            digest.update(path.read_bytes())
        digest.update(b"\0")
    return digest.hexdigest()


@functools.cache
def find_folder() -> Path | None:
    """Return the cache folder, made if missing; None, with one logged line, if none is safe."""
    try:
        return prepare_folder(choose_folder())
    except UnusableError as error:
        _tell(f"{error}; compiled functions, which are code, are kept where no one else writes")
    except (OSError, RuntimeError) as error:
        place, why = getattr(error, "filename", None) or "cache", getattr(error, "strerror", error)
        _tell(
            f"{place}: cannot be used ({why}); keep compiled functions elsewhere: NUMBA_CACHE_DIR"
        )
    return None


def choose_folder() -> Path:
    """Choose the cache folder by environment and operating system.

    Raises
    ------
    RuntimeError
        If the user has no home.
    """
    said = numba.config.CACHE_DIR  # type: ignore[attr-defined]
    if said:
        return Path(said) / "dragoman"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not base.is_absolute():  # unset, or to be ignored
            base = Path.home() / ".cache"
    return base / "dragoman" / "compiled"


def prepare_folder(folder: Path) -> Path:
    """Make a folder that only this user can write to, or check that it is one."""
    folder = folder.resolve()
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    if missing:
        check_parents(missing[-1])
    for each in reversed(missing):
        each.mkdir(0o700, exist_ok=True)
    if not folder.is_dir():
        raise UnusableError(f"{folder}: is no folder; remove it, or set NUMBA_CACHE_DIR")
    info = folder.stat()
    if info.st_uid != _user(info):
        raise UnusableError(f"{folder}: belongs to another user; set NUMBA_CACHE_DIR to your own")
    if info.st_mode & _OTHERS_MAY_WRITE:
        raise UnusableError(f"{folder}: others may write there; run “chmod go-w {folder}”")
    check_parents(folder)
    return folder


def check_parents(folder: Path) -> None:
    """Refuse a folder that another user could replace.

    Notes
    -----
    Above a folder of root's there is nothing to ask, as it is root's to move. In a sticky folder,
    such as /tmp, only the owner moves what is in it. On Windows nothing is asked at all: a user's
    own folders are closed to others there.
    """
    for parent in folder.parents:
        info = parent.stat()
        if info.st_uid not in (0, _user(info)):
            raise UnusableError(
                f"{parent}: belongs to another user; set NUMBA_CACHE_DIR to a folder of your own"
            )
        if info.st_mode & _OTHERS_MAY_WRITE and not info.st_mode & stat.S_ISVTX:
            raise UnusableError(f"{parent}: others may write there; run “chmod go-w {parent}”")
        if info.st_uid == 0 != _user(info):
            break


def read_entry(path: Path, key: bytes) -> bytes | None:
    """Read an entry, checking that it is intact and owned by this user.

    Raises
    ------
    UnusableError
        If it is damaged, another entry's, no plain file, or writable for others.
    """
    try:
        with open_ordinary(path) as file:
            info = os.fstat(file.fileno())
            if info.st_uid != _user(info) or info.st_mode & _OTHERS_MAY_WRITE:
                raise UnusableError("others may write to it")
            if info.st_size > MOST_BYTES:
                raise UnusableError("larger than any compiled function")
            contents = file.read(info.st_size)
    except FileNotFoundError:
        return None
    except FolderError:
        raise UnusableError("no plain file") from None
    except OSError as error:
        raise UnusableError(f"cannot be read ({error.strerror})") from None
    start = len(OPENING) + 32
    if contents[:start] != OPENING + digest_of(key + contents[start:]).encode():
        raise UnusableError("damaged, or something else")
    with suppress(OSError):
        os.utime(path)  # so that the entries that go are those that nobody uses
    return contents[start:]


def write_entry(path: Path, key: bytes, contents: bytes) -> None:
    """Write an entry atomically.

    Notes
    -----
    Several processes may write the same entry at once; one of them is the last. Nothing waits for
    the disk: what a power cut leaves is found damaged.
    """
    handle, beside = tempfile.mkstemp(prefix=".", suffix=SUFFIX, dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(OPENING + digest_of(key + contents).encode() + contents)
        with suppress(OSError):
            path.rmdir()  # an empty folder may be there
        Path(beside).replace(path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


def remove_oldest(folder: Path, most: int) -> None:
    """Remove the least recently used entries, and leftovers of killed writers."""
    ages: list[tuple[float, str]] = []
    for each in os.scandir(folder):
        with suppress(OSError):  # another process may be quicker
            age = time.time() - each.stat(follow_symlinks=False).st_mtime
            if not each.name.endswith(SUFFIX) or not each.is_file(follow_symlinks=False):
                continue
            if not each.name.startswith("."):
                ages.append((age, each.path))
            elif age > ABANDONED_AFTER:
                Path(each.path).unlink()
    for _, path in sorted(ages)[most:]:
        with suppress(OSError):
            Path(path).unlink()


def _define(names: tuple[str, ...]) -> str:
    """Return source code that defines empty functions of some names."""
    return "\n".join(f'define void @"{each}"() {{\n ret void\n}}' for each in names)


def _user(info: os.stat_result) -> int:
    """Return the user id of this process; on Windows, of the file's owner."""
    return os.geteuid() if hasattr(os, "geteuid") else info.st_uid


def _tell(text: str) -> None:
    """Log one line, only once a process: if one entry is damaged, others may be."""
    if not _told:
        _log.warning("%s", " ".join(text.split()))
    _told.append(text)
