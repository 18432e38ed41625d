"""Client side of a translation process: start, send sentences, restart."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from dragoman.serving.queue.process_messages import (
    Message,
    pack_tasks,
    read_message,
    unpack_translations,
    write_message,
)
from dragoman.serving.sentence_translation import SentenceTask, SentenceTranslation
from dragoman.serving.service_types import ServiceError

MODULE = "dragoman.serving.queue.translation_process"


class ProcessEndedError(RuntimeError):
    """A translation process that ended unexpectedly."""


class ProcessTranslator:
    """Translates sentences in a subprocess and restarts it when it ends.

    Parameters
    ----------
    model : Path
        A model folder.
    precision : str
        In which to compute.
    num_threads : int
        Threads that share a product.

    Notes
    -----
    Python lets only one thread of a process run at a time. Were models translated in the process
    that answers clients, the two would wait for each other thousands of times a second. And if a
    model's process crashes, only what it was translating fails.
    """

    def __init__(self, model: Path, precision: str, num_threads: int) -> None:
        self._command = [
            sys.executable, "-m", MODULE, str(model), precision, str(num_threads)
        ]  # fmt: skip
        self._environment = os.environ | {"OMP_NUM_THREADS": str(num_threads)}
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = threading.Event()
        self._is_closed = False
        self._changing = threading.Lock()
        self._start()

    @property
    def is_ready(self) -> bool:
        """Whether the model is loaded."""
        return self._is_ready.is_set()

    @property
    def process_id(self) -> int | None:
        """Process id; None: the process has ended."""
        is_there = self._process is not None and self._process.poll() is None
        return self._process.pid if self._process is not None and is_there else None

    def load(self) -> None:
        """Wait until the model is loaded."""
        if not self._is_ready.is_set():
            self._receive()
            self._is_ready.set()

    def __call__(self, tasks: Sequence[SentenceTask]) -> list[SentenceTranslation]:
        """Translate sentences."""
        try:
            return self._translate(tasks)
        except ProcessEndedError:
            if len(tasks) > 1:
                raise  # whoever asked tries the halves
        return self._translate(tasks)  # perhaps somebody ended it, and not the sentence

    def close(self) -> None:
        """Kill the process for good."""
        with self._changing:  # or a thread that starts another would leave it behind
            self._is_closed = True
            self._end()

    def _translate(self, tasks: Sequence[SentenceTask]) -> list[SentenceTranslation]:
        self.load()
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            write_message(self._process.stdin, pack_tasks(tasks))
        except OSError:
            self._restart()
            raise ProcessEndedError from None
        answer = self._receive()
        if "refusal" in answer:
            raise ServiceError("bad_request", answer["refusal"])
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        return unpack_translations(answer)

    def _start(self) -> None:
        self._is_ready.clear()
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self._environment
        )

    def _receive(self) -> Message:
        """Read the next message of the process."""
        assert self._process is not None
        assert self._process.stdout is not None
        answer = read_message(self._process.stdout)
        if answer is None:
            self._restart()
            raise ProcessEndedError
        return answer

    def _restart(self) -> None:
        with self._changing:
            if not self._is_closed:
                self._end()
                self._start()

    def _end(self) -> None:
        """Kill the process; close its output last, since a thread may be reading it."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.kill()  # what it may be doing is for nobody
        process.wait()
        with contextlib.suppress(OSError):
            process.stdin.close()
        process.stdout.close()
