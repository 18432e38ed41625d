"""What “dragoman translate --document” does; nothing heavy is imported before it runs."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.flags import Parser, check_extra, given_flags
from dragoman.decoding.options import SamplingOptions, SearchOptions
from dragoman.errors import OptionError
from dragoman.files import read_bounded, write_file

if TYPE_CHECKING:
    from dragoman.serving.documents.documents import FindTerms
    from dragoman.serving.language_pairs import ServedModels
    from dragoman.serving.service_types import ServedModel

MOST_BYTES = 100 << 20
"""Bytes of a document, packed; a server takes fewer."""

_OF_PDF = (".docx", ".txt")
# What has a meaning for lines alone.
_OF_LINES = (
    "file", "n_best", "prefix", "alignments", "confidence", "others", "forbid", "scores",
    "sample", "short_list", "explain_engine",
)  # fmt: skip


def add_document(parser: Parser) -> None:
    """Let a user name a document."""
    parser.add_argument(
        "--document", type=Path, metavar="FILE",
        help="translate a file such as report.docx, subtitles, a web page or a catalogue of "
        "messages, and write it to --output with its layout; a PDF becomes .docx or .txt",
    )  # fmt: skip
    parser.add_argument(
        "--columns", type=lambda text: [each.strip() for each in text.split(",")], metavar="A,B",
        help="of a --document in .csv or .tsv, columns by name or number (else all of text)",
    )  # fmt: skip


def translate_file(options: argparse.Namespace) -> None:
    """Translate a document as the server does, and write it beside."""
    if options.document is None:
        raise OptionError("--columns means something with --document only; give that")
    _check_flags(options)
    _check_places(options.document, options.output)
    check_extra("translate --document")
    from dragoman.serving.documents.documents import read_document, translate_document
    from dragoman.serving.language_pairs import ServedModels, load_models
    from dragoman.serving.options import ServeOptions
    from dragoman.serving.service import Service
    from dragoman.serving.service_types import Client, Request, ServiceError

    said = given_flags(options, SearchOptions)
    beam_size = said.get("beam_size")
    how = ServeOptions(processes=0, max_beam_size=max(beam_size or 1, ServeOptions.max_beam_size))
    content = read_bounded(options.document, MOST_BYTES, "give a smaller one")
    models = load_models([options.model], options.device, options.precision)
    model = _choose(models, said.get("into"))
    find_terms = _read_terms(options.terms, model)
    service = Service(ServedModels([model]), how)

    async def translate() -> bytes:
        document = read_document(
            options.document.name, content, 8 * MOST_BYTES, model.target, options.columns or (),
            options.output.suffix,
        )  # fmt: skip
        request = Request(
            texts=(),
            source=model.source,
            target=model.target,
            client=Client(name="terminal"),
            beam_size=beam_size,
            formality=said.get("formality"),
        )
        service.start()
        try:
            return await translate_document(service, document, request, find_terms=find_terms)
        finally:
            await asyncio.to_thread(service.stop)

    try:
        written = asyncio.run(translate())
    except ServiceError as error:
        reason = error.message.removeprefix("Invalid request: ")
        raise OptionError(f"{options.document}: {reason}") from None
    _check_places(options.document, options.output)  # It may have taken long.
    write_file(options.output, written)


def _read_terms(path: Path | None, model: "ServedModel") -> "FindTerms | None":
    """Read a glossary, and warn of terms that the model cannot write."""
    if path is None:
        return None
    from dragoman.decoding.constraints.constraints import prepare_constraints
    from dragoman.decoding.constraints.glossary import read_glossary
    from dragoman.serving.glossaries import Dictionary

    glossary = read_glossary(path)
    prepared = prepare_constraints(model.translator.folder.vocabularies.target, glossary=glossary)
    for warning in prepared.warnings:
        print(f"dragoman: {warning}", file=sys.stderr)
    kept = prepared.constraints.glossary
    terms = () if kept is None else kept.terms
    entries = tuple((each.source, each.target) for each in terms)
    return Dictionary(source=model.source, target=model.target, entries=entries).find_terms


def _check_flags(options: argparse.Namespace) -> None:
    """Refuse flags that apply only to line-by-line translation."""
    given = {*given_flags(options, SearchOptions), *given_flags(options, SamplingOptions)}
    given -= {"into", "beam_size", "formality"}
    given |= {name for name in _OF_LINES if getattr(options, name) not in (None, False, "", [])}
    for name in sorted(given):
        flag = {"others": "--with", "file": "FILE"}.get(name, "--" + name.replace("_", "-"))
        raise OptionError(f"{flag} is for lines of text, not for --document; leave it out")


def _check_places(document: Path, output: Path | None) -> None:
    """Refuse what cannot be read, or would be overwritten."""
    if output is None:
        raise OptionError("--document needs --output: give the file to write")
    if not document.is_file():
        raise OptionError(f"{document}: no such file; give a document")
    kind, new_kind = document.suffix.lower(), output.suffix.lower()
    if kind == ".pdf" and new_kind not in _OF_PDF:
        raise OptionError(
            f"--output is {output}, but of a .pdf file only the text can be written; give a name "
            f"that ends in {' or '.join(_OF_PDF)}"
        )
    if kind not in (".pdf", new_kind):
        raise OptionError(
            f"--output is {output}, but a {document.suffix or 'nameless'} file stays one; give a "
            "name that ends in the same way"
        )
    if output.exists() or output.is_symlink():
        raise OptionError(f"{output}: is there already; give another --output, or remove it")


def _choose(models: "ServedModels", into: str | None) -> "ServedModel":
    """Choose the pair of languages of a model that has several."""
    known = {each.into or each.target: each for each in models.all}
    fitting = [each for each in models.all if into in (None, each.into, each.target)]
    if len(fitting) != 1:
        names = ", ".join(known)
        said = f"is “{into}”" if into else "is missing"
        raise OptionError(f"--into {said}; the model translates into {names}: give one of these")
    return fitting[0]
