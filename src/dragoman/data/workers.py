"""Map a function over blocks in several processes, with results in order.

A worker is a fresh Python that imports one module and speaks through its standard input and output
in plain bytes. Nothing is forked, so the threads of other libraries do not matter; the caller's
program is not run again; nothing is pickled.
"""

import importlib
import os
import queue
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import IO

from dragoman.errors import DataError, DragomanError

Message = Sequence[bytes]
Work = Callable[[Message], Message]

INLINE_BLOCKS = 16
MOST_WORKERS = 16
_NUMBER = 8
_DONE, _REFUSED = b"done", b"refused"


def count_cores() -> int:
    """Count the cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on every system
        return os.cpu_count() or 1


def map_blocks(
    make_work: Callable[[Message], Work],
    setting: Message,
    blocks: Iterable[Message],
    *,
    num_workers: int | None = None,
) -> Iterator[Message]:
    """Map a function over blocks, in several processes if there are many blocks.

    Parameters
    ----------
    make_work : Callable[[Message], Work]
        A function of a module, called once in each process with the setting; what it returns is
        called with each block.
    setting : Message
        What the work needs to know.
    blocks : Iterable[Message]
        The blocks; drawn as they are needed, some ahead of the results.
    num_workers : int | None
        Processes; one: all is done here. None: as many as there are cores, sixteen at most.

    Notes
    -----
    The first blocks are done here, so that a small corpus never waits for processes to start.
    What the work refuses with an error for people is raised here, at that block's turn. Whoever
    stops listening, as by Ctrl-C, ends the workers; they do not hear Ctrl-C themselves.
    """
    if num_workers is None:  # an embedded Python may have no executable
        num_workers = min(MOST_WORKERS, count_cores()) if sys.executable else 1
    rest = iter(blocks)
    here = rest if num_workers <= 1 else islice(rest, INLINE_BLOCKS)
    work = make_work(setting)
    for block in here:
        yield work(block)
    del work
    for block in rest:  # there is at least one more
        yield from _map_in_processes(make_work, setting, chain([block], rest), num_workers)


def serve(module: str, name: str) -> None:
    """Run a worker: read a setting and blocks from standard input, write results."""
    incoming, outgoing = sys.stdin.buffer, sys.stdout.buffer
    make_work: Callable[[Message], Work] = getattr(importlib.import_module(module), name)
    setting = receive(incoming)
    if setting is None:
        return
    work = make_work(setting)
    with suppress(BrokenPipeError):  # the parent has closed the pipe
        while (block := receive(incoming)) is not None:
            try:
                reply = [_DONE, *work(block)]
            except DragomanError as error:
                reply = [_REFUSED, str(error).encode()]
            send(outgoing, reply)


def send(stream: IO[bytes], message: Message) -> None:
    """Write a message."""
    sizes = (len(message), *map(len, message))
    stream.write(b"".join(size.to_bytes(_NUMBER, "little") for size in sizes))
    for part in message:
        stream.write(part)
    stream.flush()


def receive(stream: IO[bytes]) -> list[bytes] | None:
    """Read a message."""

    def read_number() -> int:
        return int.from_bytes(_read(stream, _NUMBER), "little")

    try:
        sizes = [read_number() for _ in range(read_number())]
        return [_read(stream, size) for size in sizes]
    except EOFError:
        return None


def _read(stream: IO[bytes], size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError
    return found


def _map_in_processes(
    make_work: Callable[[Message], Work],
    setting: Message,
    blocks: Iterable[Message],
    num_workers: int,
) -> Iterator[Message]:
    """Map in worker processes, each served by a thread that writes to it and reads from it."""
    waiting: deque[Future[Message]] = deque()
    with (
        ThreadPoolExecutor(num_workers) as threads,
        # The processes end first, so that no thread waits for one.
        _started(make_work, setting, num_workers) as idle,
    ):

        def call(block: Message) -> Message:
            process = idle.get()
            try:
                return _call(process, block)
            finally:
                idle.put(process)

        failure: DragomanError | None = None
        rest = iter(blocks)
        while True:
            try:
                block = next(rest)
            except StopIteration:
                break
            except DragomanError as error:  # results before the failure are yielded first
                failure = error
                break
            waiting.append(threads.submit(call, block))
            if len(waiting) > 2 * num_workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        if failure is not None:
            raise failure


@contextmanager
def _started(
    make_work: Callable[[Message], Work], setting: Message, num_workers: int
) -> Iterator[queue.SimpleQueue[subprocess.Popen]]:
    """Start the workers, and stop them when the context ends."""
    program = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; "
        f"serve({make_work.__module__!r}, {make_work.__name__!r})"
    )
    # One thread each: the processes are the parallelism.
    surroundings = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    processes: list[subprocess.Popen] = []
    idle: queue.SimpleQueue[subprocess.Popen] = queue.SimpleQueue()
    try:
        for _ in range(num_workers):
            processes.append(_start([sys.executable, "-c", program], surroundings))
        for process in processes:
            with suppress(BrokenPipeError):  # reported when the first block is sent
                send(process.stdin, setting)  # type: ignore[arg-type]
            idle.put(process)
        yield idle
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream.close()  # type: ignore[union-attr]


def _start(words: list[str], surroundings: dict[str, str]) -> subprocess.Popen:
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=surroundings,
            start_new_session=True,  # only the parent handles Ctrl-C
        )
    except OSError as error:
        raise DataError(
            f"a worker process could not be started ({error.strerror}); free some memory and try "
            "again"
        ) from None


def _call(process: subprocess.Popen, block: Message) -> Message:
    """Send one block to a worker process, and read its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    reply = None
    with suppress(BrokenPipeError):
        send(process.stdin, block)
        reply = receive(process.stdout)
    if reply is None:
        status = process.wait()
        raise DataError(
            f"a worker process ended before its work (status {status}); free some memory and try "
            "again"
        )
    kind, *result = reply
    if kind == _REFUSED:
        raise DataError(result[0].decode())
    return result
