"""The command ``dragoman``: what every verb has in common, errors above all.

Nothing but errors is imported before `main` is ready to be interrupted.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import TYPE_CHECKING, Any

from dragoman.errors import DragomanError, OptionError

if TYPE_CHECKING:
    from dragoman.cli.flags import Parser


LONGEST_LINE = 2000
"""Characters of a message; what it quotes may be anything."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command."""
    with _interruptible(ends_process=arguments is None):
        try:
            _run(arguments)
        finally:
            if arguments is None and sys.argv[1:2] == ["translate"]:
                gc.freeze()  # the process ends: going through all objects would take longest


def _run(arguments: list[str] | None) -> None:
    """Run the command, and tell what goes wrong in one line."""
    words = sys.argv[1:] if arguments is None else arguments
    # A closed stream is None, and what is printed to None goes to standard output.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    try:
        verb = next((word for word in words if not word.startswith("-")), None)
        options = build_parser(verb).parse([word for word in words if word != "--debug"])
        if not hasattr(options, "run"):
            raise OptionError("which verb? see “dragoman --help”")
        options.run(options)
        _flush_output()
    except DragomanError as error:
        if "--debug" in words:
            raise
        _complain(str(error))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if "--debug" in words:
            raise
        place = f"{error.filename}: " if error.filename else ""
        _complain(f"{place}{error.strerror or error}; free some space or choose another place")
    except (RuntimeError, MemoryError) as error:
        if "--debug" in words or not _is_out_of_memory(error):
            raise
        _complain(
            "out of memory; train with a lower --batch-tokens or a higher --accumulate, translate "
            "with a lower --beam-size or --max-extra-tokens, or use --device cpu"
        )
    except KeyboardInterrupt:
        sys.stderr.write("dragoman: interrupted\n")
        sys.exit(130)
    finally:
        _forget_untold()


@contextmanager
def _interruptible(*, ends_process: bool) -> Iterator[None]:
    """Let Ctrl-C end the command in one line, whatever it is doing."""
    is_main = threading.current_thread() is threading.main_thread()  # others get no signals
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    former = sys.unraisablehook

    def leave_if_interrupted(lost: Any) -> None:  # noqa: ANN401
        """Leave where an interruption would be lost: when objects are freed, or C calls Python."""
        if lost.exc_type is KeyboardInterrupt:
            _leave(signal.SIGINT, None)
        former(lost)

    signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = leave_if_interrupted
    try:
        yield
    finally:
        sys.unraisablehook = former
        # What Python does at its end shows a traceback when it is interrupted.
        signal.signal(signal.SIGINT, _leave if ends_process else signal.default_int_handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the work; during an import, leave at once.

    Within an import an exception may be shown with a traceback and lost, or become another one.
    There is nothing to be put in order: files are written so that a killed process does no harm.
    """
    each = frame
    while each is not None:
        if each.f_code.co_filename.startswith("<frozen importlib"):
            _leave(number, frame)
        each = each.f_back
    raise KeyboardInterrupt


def _leave(number: int, frame: FrameType | None) -> None:
    """Leave at once, saying why."""
    del number, frame
    try:
        os.write(2, b"dragoman: interrupted\n")
    finally:
        os._exit(130)


def _is_out_of_memory(error: Exception) -> bool:
    """Whether a GPU, PyTorch on a CPU, or Python itself is out of memory."""
    is_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    return is_torch or isinstance(error, MemoryError)


def _complain(message: str) -> None:
    """Tell one line and leave with status 2."""
    line = " ".join(message.split())
    line = "".join(
        each if each.isprintable() else "�" for each in line
    )  # foreign names may do harm
    if len(line) > LONGEST_LINE:  # the place is at the beginning, the remedy at the end
        line = f"{line[: LONGEST_LINE // 2]} … {line[-LONGEST_LINE // 2 :]}"
    try:
        sys.stderr.write(f"dragoman: {line}\n")
    finally:
        os._exit(2) if _stdout_is_broken() else sys.exit(2)


def _flush_output() -> None:
    """Print what is left, or say that it is the printing alone that failed."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise DragomanError(
            f"standard output: cannot be written ({error.strerror}); the work is done, but what "
            "was to be printed is lost: send it elsewhere"
        ) from None


def _forget_untold() -> None:
    """Drop what the standard error stream does not take, which would change the exit status."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def _stdout_is_broken() -> bool:
    """Whether what is left in the output's buffer cannot be written, so an exit would complain."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def build_parser(word: str | None = None) -> "Parser":
    """Make the parser of all verbs.

    Parameters
    ----------
    word : str | None
        The first word that is no flag, by which `add_verbs` leaves out what is not needed.
    """
    from dragoman import __version__
    from dragoman.cli.flags import Parser
    from dragoman.cli.verb_table import add_verbs

    parser = Parser(
        prog="dragoman",
        description="Train, run and explain translation models.",
        epilog="“dragoman VERB --help” tells more of a verb. --debug shows tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)
    add_verbs(verbs, word)
    return parser


if __name__ == "__main__":
    main()
