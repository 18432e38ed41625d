"""Main program of a process that reads a PDF: the file in, its parts out as JSON.

It is started as ``python -m`` with this module's name, and is a process of its own because nothing
else bounds what a hostile PDF makes a library do: it has so much memory and time, writes no file,
and if it crashes, nobody else does.
"""

import contextlib
import json
import sys
from dataclasses import asdict

from dragoman.serving.documents.pdf.pdf_pages import UnreadablePdfError, read_pages
from dragoman.serving.documents.pdf.pdf_paragraphs import read_parts

try:
    import resource
except ImportError:  # Windows, where time alone is bounded
    resource = None  # type: ignore[assignment]

MOST_MEMORY = 1 << 30
"""Bytes of memory for a PDF and all that is made of it."""


def main() -> None:
    """Read a PDF from standard input, and write its parts to standard output."""
    _bound_resources()
    try:
        parts = read_parts(read_pages(sys.stdin.buffer.read()))
        answer: object = {"parts": [asdict(each) for each in parts]}
    except UnreadablePdfError as error:
        answer = {"refusal": str(error)}
    except MemoryError:
        answer = {"refusal": "the PDF needs too much memory; split it"}
    sys.stdout.buffer.write(json.dumps(answer).encode())


def _bound_resources() -> None:
    """Bound memory, and forbid to write files."""
    if resource is None:
        return
    bounds = (
        (resource.RLIMIT_AS, MOST_MEMORY),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    )
    for kind, most in bounds:
        with contextlib.suppress(ValueError, OSError):  # macOS does not bound all of them.
            resource.setrlimit(kind, (most, most))


if __name__ == "__main__":
    main()
