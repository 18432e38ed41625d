"""Tune memory management: the C library's allocator and Python's garbage collector."""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Numbers of the C library's options and of the system's advice, and blocks up to which freed memory
# is kept for the next.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_MADV_DONTNEED = 4
_KEPT_BYTES = 1 << 24
_SMALL_BYTES = 1 << 17
# For fewer translations the collector is left alone.
MANY = 256


def keep_freed_memory() -> None:
    """Let malloc keep freed memory for the next tensor.

    Notes
    -----
    By default it gives large blocks back to the system, which hands them out again page by page,
    each filled with zeros: scores of a vocabulary would pay that at every step.
    """
    _set_kept(_KEPT_BYTES)


def return_large_blocks() -> None:
    """Let malloc return large freed blocks at once, while weights are read.

    Notes
    -----
    By default it soon keeps them, and what is read meanwhile lies among them, so that they cannot
    be given back later.
    """
    _set_kept(_SMALL_BYTES)


def release_freed_memory() -> None:
    """Return memory that malloc kept to the system, once loading is over."""
    library = _find_glibc()
    if library is not None:
        library.malloc_trim(0)


def drop_code_pages(name: str) -> None:
    """Drop the pages of a shared library's code that were read from disk.

    Notes
    -----
    They are read again if anybody calls the library. Only code is forgotten, which nothing ever
    writes to; where that is, only Linux says.
    """
    library, maps = _find_glibc(), Path("/proc/self/maps")
    if library is None or not maps.exists():
        return
    for line in maps.read_text().splitlines():
        stretch, rights, *_, file = line.split(maxsplit=5)
        if rights == "r-xp" and Path(file).name.startswith(name):
            start, end = (int(each, 16) for each in stretch.split("-"))
            library.madvise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _MADV_DONTNEED)


def _set_kept(size: int) -> None:
    library = _find_glibc()
    if library is not None:
        library.mallopt(_M_MMAP_THRESHOLD, size)
        library.mallopt(_M_TRIM_THRESHOLD, size)


def _find_glibc() -> ctypes.CDLL | None:
    """Find glibc, if malloc can be tuned."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    return library if hasattr(library, "mallopt") and hasattr(library, "malloc_trim") else None


@contextmanager
def frozen_garbage_collector(num_results: int) -> Iterator[None]:
    """Freeze existing objects, so that the collector scans only new ones.

    Parameters
    ----------
    num_results : int
        How many results will be made; for less than `MANY` nothing is done, as what a server has
        just thrown away would grow old before its time with every call.

    Notes
    -----
    Thousands of translations are hundreds of thousands of objects, for which the collector goes
    again and again through all that the libraries have made: a quarter of the host's time.
    """
    if num_results < MANY:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
