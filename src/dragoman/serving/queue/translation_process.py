"""Main program of a translation process: sentences in, translations out.

It is started as ``python -m`` with this module's name and MODEL PRECISION THREADS, reads messages
from its standard input, and ends when there are no more.
"""

import os
import signal
import sys
from pathlib import Path
from typing import BinaryIO

from dragoman.serving.queue.process_messages import (
    Message,
    pack_translations,
    read_message,
    unpack_tasks,
    write_message,
)
from dragoman.serving.sentence_translation import SentenceTranslator
from dragoman.serving.service_types import ServiceError

NICENESS = 15


def main() -> None:
    """Load a model and answer messages until the input ends."""
    path, precision, num_threads = sys.argv[1:]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # those are for the server, which ends this in time
    if hasattr(os, "nice"):
        os.nice(NICENESS)  # answering clients comes first
    answers = _take_output()
    import torch

    from dragoman.decoding.translator import Translator

    torch.set_num_threads(int(num_threads))
    translator = Translator.load(Path(path), "cpu", (), precision)  # type: ignore[arg-type]
    work = SentenceTranslator(translator)
    write_message(answers, {"ready": True})
    serve(work, sys.stdin.buffer, answers)


def serve(work: SentenceTranslator, questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer messages until there are no more."""
    while (message := read_message(questions)) is not None:
        write_message(answers, _answer(work, message))


def _answer(work: SentenceTranslator, message: Message) -> Message:
    """Translate; report failures by type only, as messages may contain a client’s text."""
    try:
        return pack_translations(work(unpack_tasks(message)))
    except ServiceError as error:
        return {"refusal": error.message}
    except Exception as error:  # noqa: BLE001 - the server decides what becomes of it
        return {"failure": type(error).__name__}


def _take_output() -> BinaryIO:
    """Reserve standard output for messages; redirect prints to standard error."""
    kept = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return os.fdopen(kept, "wb")


if __name__ == "__main__":
    main()
