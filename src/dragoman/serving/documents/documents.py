"""Document translation: choose the format, translate the texts in batches, write the file."""

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from dragoman.serving.detection import choose_source
from dragoman.serving.documents.encodings import DecodedText, decode_text
from dragoman.serving.documents.office_documents import OFFICE_FORMATS, read_office
from dragoman.serving.documents.pdf.pdf_documents import PDF_OUTPUTS, read_pdf
from dragoman.serving.documents.po_documents import read_po
from dragoman.serving.documents.resource_documents import read_json, read_yaml
from dragoman.serving.documents.rtf_documents import read_rtf
from dragoman.serving.documents.table_documents import read_table
from dragoman.serving.documents.text_documents import (
    MOST_MARKUP,
    TEXT_FORMATS,
    Document,
    Translated,
    check_length,
    read_text,
)
from dragoman.serving.documents.translation_units import read_tmx, read_xliff
from dragoman.serving.queue.model_queue import TERMS_WEIGHT
from dragoman.serving.service import Service
from dragoman.serving.service_types import Request, ServiceError, Span
from dragoman.text.sentence_splitting import split_long

FindTerms = Callable[[Sequence[str]], tuple[tuple[str, str], ...]]

MESSAGE_FORMATS = (
    *(".json", ".arb", ".yaml", ".yml", ".po", ".pot"),
    *(".xlf", ".xliff", ".tmx", ".csv", ".tsv"),
)
FORMATS = (*TEXT_FORMATS, *OFFICE_FORMATS, ".rtf", ".pdf", *MESSAGE_FORMATS)
"""Extensions of the files that can be translated."""

MOST_CHARACTERS = 1_000_000
"""Characters of the texts of a document, as many as DeepL takes."""
MOST_TEXTS_AT_ONCE = 32
"""Texts of a document that are translated together, so that others have their turn between."""
_PATIENCE = 20
_LONGEST_NAME = 200
# Control characters, bidirectional overrides, lone surrogates, line separators.
_NO_NAME = ("Cc", "Cf", "Cs", "Zl", "Zp")


def check_name(name: str) -> str:
    """Validate a file name: refuse paths and control characters."""
    if not name.strip() or name.strip(". ") == "":
        raise ServiceError("bad_request", "Invalid request: the file has no name; give it one")
    if len(name.encode("utf-8", "replace")) > _LONGEST_NAME:
        raise ServiceError("bad_request", "Invalid request: the file name is too long; shorten it")
    # Full-width slashes count as slashes.
    plain = unicodedata.normalize("NFKC", name)
    is_path = plain.startswith("..") or "/" in plain or "\\" in plain
    if is_path or any(unicodedata.category(each) in _NO_NAME for each in name):
        raise ServiceError(
            "bad_request",
            "Invalid request: the file name has characters that are not for file names; rename it",
        )
    return name


def find_format(name: str) -> str:
    """Find the format by the file extension."""
    extension = PurePosixPath(name).suffix.lower()
    if extension not in FORMATS:
        known = ", ".join(each[1:] for each in FORMATS)
        raise ServiceError(
            "bad_request",
            f"Invalid request: file format not supported; send one of {known}, and say which by "
            "the file extension",
            details={"parameter": "file"},
        )
    return extension


def choose_output(name: str, wanted: str | None = None) -> str:
    """Choose what a file becomes.

    Parameters
    ----------
    name : str
        Of the file.
    wanted : str | None
        Which extension is asked for, with or without a full stop; nothing: the usual one.

    Returns
    -------
    str
        An extension: the file’s own, or for a PDF, which nobody can write anew, that of a document
        with its text.
    """
    extension = find_format(name)
    outputs = tuple(PDF_OUTPUTS) if extension == ".pdf" else (extension,)
    output = f".{wanted.lower().removeprefix('.')}" if wanted else outputs[0]
    if output not in outputs:
        known = " or ".join(outputs)
        said = f"becomes {known}" if extension == ".pdf" else "stays one"
        raise ServiceError(
            "bad_request",
            f"Value for 'output_format' not supported: a {extension} file {said}.",
            details={"parameter": "output_format"},
        )
    return output


def read_document(
    name: str,
    content: bytes,
    most_bytes: int,
    target: str = "",
    columns: Sequence[str] = (),
    output: str | None = None,
) -> Document:
    """Parse a file.

    Parameters
    ----------
    name : str
        Its name.
    content : bytes
        What it holds.
    most_bytes : int
        How large it may be when unpacked.
    target : str
        The language that it becomes: files for exchange hold several.
    columns : Sequence[str]
        Of a table the columns that are translated; nothing: those that hold text.
    output : str | None
        The extension of what it becomes; nothing: see `choose_output`.

    Returns
    -------
    Document
        The texts that are to be translated, and how to write the file with others.
    """
    extension = find_format(check_name(name))
    if columns and extension not in (".csv", ".tsv"):
        raise ServiceError(
            "bad_request", f"Invalid request: {extension} files have no columns to choose"
        )
    output = choose_output(name, output)
    if extension == ".pdf":
        document = read_pdf(content, output, target)
    elif extension == ".rtf":
        document = read_rtf(content)
    elif extension in OFFICE_FORMATS:
        document = read_office(content, extension, most_bytes)
    elif extension in MESSAGE_FORMATS:
        decoded = decode_text(content)
        check_length(len(decoded.text), MOST_MARKUP)
        document = _read_messages(decoded, extension, target, columns)
        document = replace(document, encoding=decoded.encoding)
    else:
        document = read_text(content, extension)
    check_length(sum(map(len, document.texts)), MOST_CHARACTERS)
    return document


def _read_messages(
    decoded: DecodedText, extension: str, target: str, columns: Sequence[str]
) -> Document:
    """Parse a file of messages, units or cells, in which placeholders are kept."""
    text, encode = decoded.text, decoded.encode
    if extension in (".json", ".arb"):
        return read_json(text, encode)
    if extension in (".yaml", ".yml"):
        return read_yaml(text, encode)
    if extension in (".po", ".pot"):
        return read_po(text, encode, target)
    if extension in (".csv", ".tsv"):
        return read_table(text, encode, extension, columns)
    return (read_tmx if extension == ".tmx" else read_xliff)(text, encode, target)


@dataclass(kw_only=True)
class Progress:
    """Progress of a document translation in characters.

    Parameters
    ----------
    num_characters : int
        Of all its texts.
    num_done : int
        Of those that are translated.
    """

    num_characters: int = 0
    num_done: int = 0


async def translate_document(
    service: Service,
    document: Document,
    request: Request,
    *,
    progress: Progress | None = None,
    find_terms: FindTerms | None = None,
) -> bytes:
    """Translate a document.

    Parameters
    ----------
    service : Service
        Translates.
    document : Document
        The document.
    request : Request
        The languages and the client; its texts do not matter. A language that is to be found is
        found for the document as a whole.
    progress : Progress | None
        Is told how far it is.
    find_terms : FindTerms | None
        Finds what of a glossary occurs in some texts; None: there is none.

    Notes
    -----
    Texts go to the service a few at a time, so that a book does not fill its queue; while the queue
    is full, the document waits.
    """
    texts = document.texts
    if request.source is None and texts:
        request = replace(request, source=find_source(service, texts, request.target))
    if document.into is not None and request.source is not None:
        document = document.into(request.source, request.target)
    longest = service.options.max_characters
    pieces = [
        (index, piece)
        for index, text in enumerate(texts)
        for piece in _split_long_text(text, longest)
    ]
    progress = Progress() if progress is None else progress
    progress.num_characters = sum(len(piece) for _, piece in pieces)
    translated: list[list[tuple[str, Translated]]] = [[] for _ in texts]
    most = min(MOST_TEXTS_AT_ONCE, service.options.max_texts)
    at_once = longest if find_terms is None else longest // TERMS_WEIGHT
    for batch in _batch_texts(pieces, most, at_once):
        texts_now = tuple(piece for _, piece in batch)
        terms = request.terms if find_terms is None else find_terms(texts_now)
        some = replace(request, texts=texts_now, terms=terms, wants_alignment=True)
        answers = await _translate_with_retries(service, some)
        for (index, piece), answer in zip(batch, answers, strict=True):
            translated[index].append((piece, (answer.text, answer.alignment)))
            progress.num_done += len(piece)
    joined = [_join_pieces(parts) for parts in translated]
    return await asyncio.to_thread(document.write, joined)


def find_source(service: Service, texts: Sequence[str], target: str) -> str:
    """Detect the language of a document.

    Returns
    -------
    str
        The most likely language, or one as good that can become the target: see `choose_source`.
    """
    found = service.detect("\n".join(texts[:200]))
    return choose_source(found, find_sources(service, target), target)[0]


def find_sources(service: Service, target: str) -> set[str]:
    """List the source languages from which a target can be reached."""
    languages = service.languages()
    return {each.code for each in languages if target in (each.code, *each.targets)}


async def _translate_with_retries(service: Service, request: Request) -> Sequence:
    """Translate; while the queue is full, wait and retry."""
    for attempt in range(_PATIENCE):
        try:
            return await service.translate(request)
        except ServiceError as error:
            if error.kind != "overloaded" or attempt == _PATIENCE - 1:
                raise
            await asyncio.sleep(min(error.retry_after or 0.5, 5.0))
    raise AssertionError("the last attempt returns or raises")


def _split_long_text(text: str, longest: int) -> list[str]:
    """Split a text that exceeds the length limit of a request."""
    return split_long(text, None, lambda piece: len(piece) <= longest)


def _batch_texts(
    pieces: Sequence[tuple[int, str]], most: int, longest: int
) -> list[list[tuple[int, str]]]:
    """Group texts into requests within the limits of the service."""
    batches: list[list[tuple[int, str]]] = []
    length = longest
    for each in pieces:
        length += len(each[1])
        if not batches or length > longest or len(batches[-1]) == most:
            batches.append([])
            length = len(each[1])
        batches[-1].append(each)
    return batches


def _join_pieces(parts: Sequence[tuple[str, Translated]]) -> Translated:
    """Join the translations of a split text and shift their spans."""
    if len(parts) == 1:
        return parts[0][1]
    written = ""
    spans: list[Span] = []
    begin = 0
    for piece, (text, links) in parts:
        if written and not written[-1].isspace():
            written += " "
        spans += [
            (begin + link[0], begin + link[1], len(written) + link[2], len(written) + link[3])
            for link in links
        ]
        begin += len(piece)
        written += text
    return written, spans
