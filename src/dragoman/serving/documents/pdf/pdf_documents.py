"""PDF documents: read in a process with bounds, written as a Word file or as text."""

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

from dragoman.serving.documents.pdf.pdf_parts import Part
from dragoman.serving.documents.pdf.word_files import write_word
from dragoman.serving.documents.text_documents import Document, Translated
from dragoman.serving.service_types import ServiceError

PDF_OUTPUTS = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".txt": "text/plain; charset=utf-8",
}
"""What a PDF can become, the usual first, and the media types of that."""
MOST_SECONDS = 30.0
"""How long a PDF may take to be read."""

_MODULE = "dragoman.serving.documents.pdf.pdf_process"


def read_pdf(content: bytes, output: str, target: str) -> Document:
    """Parse a PDF, which becomes a .docx or .txt file in a language.

    Notes
    -----
    What is kept is text in reading order: paragraphs, headings, items of lists, tables, running
    heads. What is lost is the rest: pictures, fonts, the place on the page.
    """
    parts = _read_parts(content)
    slots = [
        (index, place)
        for index, part in enumerate(parts)
        for place, text in enumerate(_list_texts(part))
        if any(map(str.isalnum, text))
    ]

    def write(translations: Sequence[Translated]) -> bytes:
        texts = [_list_texts(part) for part in parts]
        for (index, place), (translation, _) in zip(slots, translations, strict=True):
            texts[index][place] = translation.strip()
        written = [_fill(part, some) for part, some in zip(parts, texts, strict=True)]
        return write_word(written, target) if output == ".docx" else _write_lines(written)

    texts = [_list_texts(parts[index])[place] for index, place in slots]
    return Document(texts=texts, write=write, media_type=PDF_OUTPUTS[output])


def _read_parts(content: bytes) -> list[Part]:
    """Read the parts of a PDF in another process, or raise."""
    # -P: what lies in the folder from which this was started is not to be imported.
    command = [sys.executable, "-P", "-m", _MODULE]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=MOST_SECONDS, check=False,
            start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ServiceError(
            "too_long", f"the PDF takes longer than {MOST_SECONDS:.0f} seconds to be read; split it"
        ) from None
    if done.returncode:
        raise _bad_request("the PDF is damaged, or needs too much memory")
    answer = json.loads(done.stdout)
    if "refusal" in answer:
        raise _bad_request(answer["refusal"])
    return [Part(**{**each, "rows": tuple(map(tuple, each["rows"]))}) for each in answer["parts"]]


def _list_texts(part: Part) -> list[str]:
    """List the texts of a part."""
    if part.kind == "table":
        return [cell for row in part.rows for cell in row]
    return [part.text]


def _fill(part: Part, texts: Sequence[str]) -> Part:
    """Put texts into a part in place of its own."""
    if part.kind != "table":
        return replace(part, text=texts[0])
    rest = iter(texts)
    rows = tuple(tuple(itertools.islice(rest, len(row))) for row in part.rows)
    return replace(part, rows=rows)


def _write_lines(parts: Sequence[Part]) -> bytes:
    """Write parts as lines, with an empty line between any two, and tabs between cells."""
    written = [
        "\n".join("\t".join(row) for row in part.rows) or f"{part.marker} {part.text}".strip()
        for part in parts
    ]
    return ("\n\n".join(each for each in written if each) + "\n").encode()


def _bad_request(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {reason}")
