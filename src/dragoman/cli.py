"""The command ``dragoman``: what every verb has in common, errors above all."""

import os
import sys
from io import TextIOWrapper

from dragoman import __version__
from dragoman.errors import DragomanError, OptionError
from dragoman.flags import Parser
from dragoman.verbs import add_verbs


def main(arguments: list[str] | None = None) -> None:
    """Run the command.

    Parameters
    ----------
    arguments : list[str] | None
        The words after ``dragoman``; None: those of the process.
    """
    words = sys.argv[1:] if arguments is None else arguments
    # A closed stream is None, and what is printed to None goes to standard output.
    sys.stdout = sys.stdout or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    sys.stderr = sys.stderr or os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    try:
        options = build_parser().parse([word for word in words if word != "--debug"])
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


def _is_out_of_memory(error: Exception) -> bool:
    """Whether a GPU, PyTorch on a CPU, or Python itself is out of memory."""
    is_torch = type(error).__name__ == "OutOfMemoryError" or "DefaultCPUAllocator" in str(error)
    return is_torch or isinstance(error, MemoryError)


def _complain(message: str) -> None:
    """Tell one line and leave with status 2."""
    line = " ".join(message.split())
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


def build_parser() -> Parser:
    """Make the parser of all verbs.

    Returns
    -------
    Parser
        The parser; what it parses has the function to call as ``run``.
    """
    parser = Parser(
        prog="dragoman",
        description="Train, run and explain translation models.",
        epilog="“dragoman VERB --help” tells more of a verb. --debug shows tracebacks.",
    )
    parser.add_argument("--version", action="version", version=f"dragoman {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)
    add_verbs(verbs)
    return parser


if __name__ == "__main__":
    main()
