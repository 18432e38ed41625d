"""Compile the search for this processor: at once, or in a process of its own, while others work.

Compiling takes half a minute, once: `dragoman.kernels.cpu_search.compiler.compile_cache` keeps the
result until Dragoman, Numba, Python or the processor change. So that the first translation on a new
machine does not wait for it, ``python -m`` with this module's name and a precision compiles in
another process, while PyTorch translates.
"""

import functools
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.decoding.memory import drop_code_pages, release_freed_memory
from dragoman.decoding.options import CpuPrecision
from dragoman.files import locked
from dragoman.kernels.cpu_search.task import IS_OVER, make_empty_task, make_team

VARIABLE = "DRAGOMAN_COMPILE"
"""The environment variable that says when to compile: “now” makes the first translation wait."""
PATIENCE = 2.0
NICENESS = 10
COMPILING = "compiling for this processor, which takes about half a minute"
COMPILER = "libllvmlite"

_log = logging.getLogger("dragoman.decoding")


@functools.cache
def compile_search(precision: CpuPrecision) -> None:
    """Compile the search, or load it from the cache.

    Notes
    -----
    It is made for types, not for sizes, so the smallest model will do. The compiler's own code,
    some 70 MB, is not needed any more then.
    """
    from dragoman.kernels.cpu_search.slot_search import search
    from dragoman.kernels.cpu_search.team import run_helper

    model, *task = make_empty_task(precision == "int8")
    team = make_team(1, 1)
    team.counters[IS_OVER] = 1
    with announce_compilation():
        search(model, *task)
        run_helper(model.output.panels, team)
    drop_code_pages(COMPILER)
    release_freed_memory()


@contextmanager
def announce_compilation() -> Iterator[None]:
    """Tell the user, if compiling takes long."""
    from dragoman.kernels.cpu_search.compiler.compile_cache import find_folder

    folder = find_folder()
    kept = "" if folder is None else f"; the result is kept in {folder}"
    notice = threading.Timer(PATIENCE, _log.warning, [COMPILING + kept])
    notice.start()
    try:
        yield
    finally:
        notice.cancel()


def is_compiled(precision: CpuPrecision) -> bool:
    """Say whether the compiled search is in the cache."""
    from dragoman.kernels.cpu_search.compiler.compile_cache import is_kept
    from dragoman.kernels.cpu_search.slot_search import search

    return is_kept(search, make_empty_task(precision == "int8"))


class BackgroundCompilation:
    """A process that compiles the search.

    Parameters
    ----------
    process : subprocess.Popen
        The process. It goes on if this one ends.
    """

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    @property
    def is_over(self) -> bool:
        """Whether the process has ended, well or not."""
        return self._process.poll() is not None

    def wait(self) -> None:
        """Wait until the process has ended."""
        with announce_compilation():
            self._process.wait()


def compile_in_background(precision: CpuPrecision) -> BackgroundCompilation | None:
    """Compile the search in another process, unless it is in the cache.

    Returns
    -------
    BackgroundCompilation | None
        The process; None: it is compiled, or has to be compiled here, because nothing can be kept,
        no process can be started, or the user wants to wait.
    """
    from dragoman.kernels.cpu_search.compiler.compile_cache import find_folder

    is_wanted = os.environ.get(VARIABLE) != "now" and not getattr(sys, "frozen", False)
    if not is_wanted or find_folder() is None or is_compiled(precision):
        return None
    # -P: what lies in the folder from which this was started is not to be imported.
    command = [
        sys.executable,
        "-P",
        "-m",
        "dragoman.decoding.engines.cpu.background_compile",
        precision,
    ]
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    _log.warning(
        "%s, once, behind this; until then PyTorch translates what is short (%s=now waits)",
        COMPILING, VARIABLE,
    )  # fmt: skip
    return BackgroundCompilation(process)


def main() -> None:
    """Compile for the precision that the command line names, one process at a time."""
    from dragoman.kernels.cpu_search.compiler.compile_cache import find_folder

    folder, precision = find_folder(), sys.argv[1]
    if folder is None or precision not in ("int8", "float32"):
        sys.exit(2)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    with locked(folder, lambda _: None):
        compile_search(precision)


if __name__ == "__main__":
    main()
