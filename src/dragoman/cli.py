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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    try:
        options = build_parser().parse([word for word in words if word != "--debug"])
        if not hasattr(options, "run"):
            raise OptionError("which verb? see “dragoman --help”")
        options.run(options)
        sys.stdout.flush()
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
        _complain(f"{place}{error.strerror or error}; nothing more was written")
    except RuntimeError as error:
        if "--debug" in words or type(error).__name__ != "OutOfMemoryError":
            raise
        _complain(
            "out of memory; train with a lower --batch-tokens or a higher --accumulate, translate "
            "with a lower --beam-size, or use --device cpu"
        )
    except KeyboardInterrupt:
        sys.stderr.write("dragoman: interrupted\n")
        sys.exit(130)


def _complain(message: str) -> None:
    """Tell one line and leave with status 2."""
    line = " ".join(message.split())
    try:
        sys.stderr.write(f"dragoman: {line}\n")
    finally:
        os._exit(2) if _stdout_is_broken() else sys.exit(2)


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
