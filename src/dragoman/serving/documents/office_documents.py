"""Office documents and EPUB: zip archives of XML in which only text is replaced."""

import io
import itertools
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException, ElementTree  # type: ignore[import-untyped]

from dragoman.serving.documents.language_marks import mark_languages, mark_page
from dragoman.serving.documents.spreadsheets import keep_values, prepare_cells, read_table_names
from dragoman.serving.documents.text_documents import (
    MOST_MARKUP,
    Document,
    Translated,
    check_length,
)
from dragoman.serving.documents.word_fields import join_fields
from dragoman.serving.markup.markup import ParsedMarkup, parse_tokens
from dragoman.serving.markup.markup_tokens import Token, split_html, split_xml
from dragoman.serving.markup.tag_rules import (
    BOOK_CONTENTS,
    CHART,
    HTML_PAGE,
    OPEN_CHART,
    OPEN_DOCUMENT,
    PRESENTATION,
    SPREADSHEET,
    WORD,
    TagRules,
)
from dragoman.serving.service_types import ServiceError

_PARTS = {
    ".docx": r"word/(?:document|footnotes|endnotes|comments|header\d*|footer\d*|charts/chart\w*"
    r"|diagrams/(?:data|drawing)\d*)\.xml",
    ".pptx": r"ppt/(?:(?:slides|notesSlides|comments)/\w+|charts/chart\w*"
    r"|diagrams/(?:data|drawing)\d*)\.xml",
    ".odt": r"(?:content|styles|Object [^/]+/content)\.xml",
    ".odp": r"(?:content|Object [^/]+/content)\.xml",
    ".epub": r".*\.(?:x?html?|svg|ncx|opf)",
    ".ods": r"(?:content|styles|Object [^/]+/content)\.xml",
    ".xlsx": r"xl/(?:sharedStrings|worksheets/\w+|comments\d*|comments/\w+|tables/\w+"
    r"|charts/chart\w*|drawings/\w+|diagrams/(?:data|drawing)\d*)\.xml",
}
OFFICE_FORMATS = tuple(_PARTS)
# Parts in which languages are marked, translated or not.
_MARKED_PARTS = re.compile(
    r"(?:word|ppt)/[\w/]+\.xml|docProps/core\.xml|(?:content|styles|meta)\.xml|.*\.(?:x?html?|ncx|opf)",
    re.IGNORECASE,
)

MOST_MEMBERS = 5000
"""Files in an archive."""

_OPEN_FORMATS = (".odt", ".odp", ".ods")
_UNSEEN = frozenset(("w:proofErr", "w:lastRenderedPageBreak"))
# No office program uses other methods, and some need much memory to unpack.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# All exceptions observed for damaged archives.
_DAMAGES = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True)
class _Part:
    """An XML member of the archive that contains translatable text."""

    name: str
    marked: ParsedMarkup
    mark: bytes


def read_office(content: bytes, extension: str, most_bytes: int) -> Document:
    """Parse an archive.

    Returns
    -------
    Document
        Its texts. Everything else in it, and the order of its files, stays as it is.

    Notes
    -----
    Nothing is unpacked to the disk. An archive that would grow too large, is encrypted, or has
    names that lead out of it, is refused before anything of it is unpacked.
    """
    wanted = _unpack(content, most_bytes, re.compile(_PARTS[extension], re.IGNORECASE))
    check_length(sum(map(len, wanted.values())), MOST_MARKUP)
    kept = read_table_names(wanted)
    parts = [
        _read_part(name, each, extension, kept)
        for name, each in wanted.items()
        if not (name.lower().endswith(".svg") and b"<!ENTITY" in each)  # a picture that stays
    ]
    if not parts:
        raise _bad_request(
            f"Invalid request: the file has no text where {extension[1:]} files have it"
        )

    def write(
        translations: Sequence[Translated], mark: Callable[[str, bytes], bytes] | None = None
    ) -> bytes:
        rest = iter(translations)
        written = {}
        for part in parts:
            some = list(itertools.islice(rest, len(part.marked.segments)))
            text = part.marked.rebuild(some)
            written[part.name] = part.mark + _without_controls(text).encode()
        return _pack(content, written, mark)

    def into(source: str, target: str) -> Document:
        mark = partial(_mark_part, source=source, target=target)
        return replace(document, write=partial(write, mark=mark), into=None)

    texts = [each for part in parts for each in part.marked.segments]
    document = Document(texts=texts, write=write, into=into)
    return document


def _unpack(content: bytes, most_bytes: int, names: re.Pattern[str]) -> dict[str, bytes]:
    """Read the named members after checking the number and size of all.

    The others are read too, to verify their checksums, but not kept.
    """
    wanted = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            _check_members(infos, most_bytes)
            for info in infos:
                part = archive.read(info)
                if names.fullmatch(info.filename):
                    wanted[info.filename] = part
            return wanted
    except _DAMAGES as error:
        reason = " ".join(str(error).split())[:100]
        raise _bad_request(
            f"Invalid request: the file is damaged, or no archive ({reason})"
        ) from None


def _check_members(infos: Sequence[zipfile.ZipInfo], most_bytes: int) -> None:
    size = sum(info.file_size for info in infos)
    if size > most_bytes or len(infos) > MOST_MEMBERS:
        raise ServiceError(
            "too_long",
            f"the file would be {size:,} bytes in {len(infos):,} parts when unpacked, but "
            f"{most_bytes:,} and {MOST_MEMBERS:,} are the most",
            details={"limit": most_bytes, "length": size},
        )
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise _bad_request("Invalid request: the archive has two parts of the same name")
    for name in names:
        is_outside = name.startswith("/") or ".." in name.split("/")
        if is_outside or re.search(r"[\\\x00-\x1f]|^\w:", name):
            raise _bad_request("Invalid request: the archive has a name that leads out of it")
    if any(info.compress_type not in _PACKINGS for info in infos):
        raise _bad_request(
            "Invalid request: the file is packed in a way that office programs do not know"
        )
    if any(info.flag_bits & 1 for info in infos):
        raise _bad_request("Invalid request: the file is encrypted; remove the password")


def _mark_part(name: str, part: bytes, source: str, target: str) -> bytes:
    """Mark the target language in a part."""
    if not _MARKED_PARTS.fullmatch(name):
        return part
    mark = mark_page if re.search(r"html?\Z", name, re.IGNORECASE) else mark_languages
    try:
        return mark(part.decode(), source, target).encode()
    except UnicodeDecodeError:
        return part


def _pack(
    content: bytes,
    written: Mapping[str, bytes],
    mark: Callable[[str, bytes], bytes] | None,
) -> bytes:
    """Write the archive with the same names, times and compression."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as original,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for info in original.infolist():
            copy = zipfile.ZipInfo(info.filename, info.date_time)
            copy.compress_type = info.compress_type
            copy.external_attr = info.external_attr
            part = written.get(info.filename)
            part = original.read(info) if part is None else part
            archive.writestr(copy, part if mark is None else mark(info.filename, part))
    return file.getvalue()


def _read_part(name: str, content: bytes, extension: str, kept: frozenset[str]) -> _Part:
    """Parse one XML member."""
    mark = b"\xef\xbb\xbf" if content.startswith(b"\xef\xbb\xbf") else b""
    try:
        text = content[len(mark) :].decode()
        if extension != ".epub":
            ElementTree.fromstring(content, forbid_dtd=True)
    except UnicodeDecodeError:
        raise _bad_request("Invalid request: a part of the file is not UTF-8") from None
    except (ParseError, DefusedXmlException, ValueError, LookupError):
        raise _bad_request("Invalid request: a part of the file is wrong or hostile XML") from None
    if extension == ".epub" and not name.lower().endswith((".ncx", ".opf")):
        return _Part(name, parse_tokens(list(split_html(text)), HTML_PAGE), mark)
    tokens = list(split_xml(text))
    if extension == ".xlsx":
        tokens = prepare_cells(tokens, kept)
    elif extension in _OPEN_FORMATS:
        tokens = keep_values(tokens)
    rules, prefix = _choose_rules(name, extension)
    if prefix == "w":
        tokens = join_fields(tokens)
    if prefix:
        tokens = _merge_runs(tokens, prefix)
    return _Part(name, parse_tokens(tokens, rules), mark)


def _choose_rules(name: str, extension: str) -> tuple[TagRules, str]:
    """Choose the rules of an XML part, and the prefix of its runs if it has runs."""
    if extension == ".epub":
        return BOOK_CONTENTS, ""
    if extension == ".xlsx" and not re.search("/(?:charts|drawings|diagrams)/", name.lower()):
        return SPREADSHEET, ""
    if extension in _OPEN_FORMATS:
        return (OPEN_CHART if "/" in name else OPEN_DOCUMENT), ""
    if "/charts/" in name.lower():
        return CHART, "a"
    if extension == ".docx" and "/diagrams/" not in name.lower():
        return WORD, "w"
    return PRESENTATION, "a"


def _merge_runs(tokens: Sequence[Token], prefix: str) -> list[Token]:
    """Merge adjacent runs of equal format, with xml:space set to preserve.

    Word cuts text into runs wherever somebody has edited it or the spelling was checked.
    """
    pieces: list[list[Token]] = []
    last_format: str | None = None  # Of the run that ends here; None: something else does.
    last_content: list[Token] = []  # Its text, behind which that of the next may go.
    place = 0
    while place < len(tokens):
        token = tokens[place]
        run = _read_run(tokens, place, prefix) if token.name == f"{prefix}:r" else None
        if run is None:
            pieces.append([_keep_spaces(token, prefix)])
            if token.name not in _UNSEEN:
                last_format = None
            place += 1
            continue
        end, look, content, opening = run
        if look == last_format:
            last_content += content
        else:
            pieces += [opening, content, list(tokens[end - 2 : end])]
            last_format, last_content = look, content
        place = end
    return [token for piece in pieces for token in piece]


def _read_run(
    tokens: Sequence[Token], place: int, prefix: str
) -> tuple[int, str, list[Token], list[Token]] | None:
    """Read a run that consists of properties and one text; None: of anything else."""
    if tokens[place].kind != "start":
        return None
    end = place + 1
    properties: list[Token] = []
    if tokens[end].name == f"{prefix}:rPr":
        first = end
        while not (tokens[end].kind in ("end", "empty") and tokens[end].name == f"{prefix}:rPr"):
            end += 1
            if tokens[end].name == f"{prefix}:r":  # One in another, over and over: hostile.
                return None
        end += 1
        properties = list(tokens[first:end])
    if tokens[end].name != f"{prefix}:t" or tokens[end].kind != "start":
        return None
    opening = [tokens[place], *properties, _keep_spaces(tokens[end], prefix)]
    content_begin = end = end + 1
    while tokens[end].kind in ("text", "other"):
        end += 1
    content = list(tokens[content_begin:end])
    is_whole = tokens[end].name == f"{prefix}:t" and tokens[end + 1].name == f"{prefix}:r"
    if not is_whole or tokens[end + 1].kind != "end":
        return None
    return end + 2, "".join(each.raw for each in properties), content, opening


def _keep_spaces(token: Token, prefix: str) -> Token:
    """Set xml:space to preserve on a text of Word."""
    is_text = prefix == "w" and token.name == "w:t" and token.kind == "start"
    if not is_text or "xml:space" in token.raw:
        return token
    return token._replace(raw=f'{token.raw[:-1]} xml:space="preserve">')


def _without_controls(text: str) -> str:
    """Remove control characters that XML does not allow."""
    return re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", text)


def _bad_request(message: str) -> ServiceError:
    return ServiceError("bad_request", message)
