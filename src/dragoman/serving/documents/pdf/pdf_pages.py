"""Pieces of text on the pages of a PDF, with their places and sizes; read by PDFium."""

import ctypes
import math
import re
import unicodedata
from typing import NamedTuple

import pypdfium2  # type: ignore[import-untyped]
import pypdfium2.raw as pdfium  # type: ignore[import-untyped]

from dragoman.serving.documents.pdf.pdf_parts import Piece

MOST_PAGES = 2000
"""Pages of a PDF."""
MOST_GLYPHS = 1_500_000
"""Characters on all its pages, visible or not."""

_WIDEST_SPACE = 0.9
"""Of its size how far from each other characters of one piece may stand."""
_UNKNOWN = 0.2
"""Share of characters without a meaning from which on nobody could read the text."""
_LIGATURES = {chr(code): unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
_HYPHENS = {"\ufffe": "\u00ad", "\u0002": "\u00ad"}
"""How PDFium writes a hyphen at the end of a line: soft, for it may belong to the word or not."""
_NO_LETTERS = "does not say which letters its fonts show"
_DINGBAT = re.compile(r"\A\s*[\uf020-\uf0ff](?=\s|\Z)")
"""A character of a symbol font at the beginning of a piece: what it shows is a bullet."""
_BOLD = re.compile("bold|black|heavy", re.IGNORECASE)


class UnreadablePdfError(Exception):
    """What is wrong with a PDF, in words for people."""


class _Style(NamedTuple):
    """How a text object is printed: in quarters of a turn, in points, in bold."""

    quarter: int = 0
    size: float = 1.0
    is_bold: bool = False


class _Glyph(NamedTuple):
    """A character, seen in the direction in which it is read."""

    character: str
    left: float
    right: float
    base: float
    style: _Style


def read_pages(content: bytes) -> list[list[list[Piece]]]:
    """Read the pieces of all pages, on each page those of each direction of writing apart.

    Notes
    -----
    The direction in which most is written comes first, so that a page that is turned is read as
    one that is not.
    """
    file = _open(content)
    pages = []
    num_glyphs = num_unknown = 0
    for number in range(len(file)):
        glyphs = _read_glyphs(file, number, MOST_GLYPHS - num_glyphs)
        num_glyphs += len(glyphs)
        num_unknown += sum(each is not None and _is_unknown(each.character) for each in glyphs)
        pages.append(_read_pieces(glyphs))
    if not any(each.text.strip() for page in pages for way in page for each in way):
        reason = "has no text, only pictures of it" if not num_unknown else _NO_LETTERS
        raise UnreadablePdfError(f"the PDF {reason}; recognise the text (OCR) first")
    if num_unknown > _UNKNOWN * num_glyphs:
        raise UnreadablePdfError(f"the PDF {_NO_LETTERS}; recognise the text (OCR) first")
    return pages


def _open(content: bytes) -> pypdfium2.PdfDocument:
    """Open a PDF that is not too long."""
    try:
        file = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError:
        is_locked = pdfium.FPDF_GetLastError() in (
            pdfium.FPDF_ERR_PASSWORD,
            pdfium.FPDF_ERR_SECURITY,
        )
        reason = "encrypted; remove the password" if is_locked else "damaged, or no PDF"
        raise UnreadablePdfError(f"the file is {reason}") from None
    if len(file) > MOST_PAGES:
        raise UnreadablePdfError(
            f"the PDF has {len(file):,} pages, but {MOST_PAGES:,} are the most; split it"
        )
    return file


def _read_glyphs(file: pypdfium2.PdfDocument, number: int, most: int) -> list[_Glyph | None]:
    """Read the characters of a page in PDFium’s order; None: a line ends."""
    try:
        page = file[number]
        text = page.get_textpage()
    except pypdfium2.PdfiumError:
        raise UnreadablePdfError(f"page {number + 1} of the PDF is damaged") from None
    num_glyphs = pdfium.FPDFText_CountChars(text)
    if num_glyphs > most:
        raise UnreadablePdfError(f"the PDF has more than {MOST_GLYPHS:,} characters; split it")
    glyphs: list[_Glyph | None] = []
    style, known = _Style(), 0
    for index in range(num_glyphs):
        character = chr(pdfium.FPDFText_GetUnicode(text, index))
        if character in "\r\n":
            glyphs.append(None)
            continue
        pointer = pdfium.FPDFText_GetTextObject(text, index)
        owner = ctypes.cast(pointer, ctypes.c_void_p).value or 0  # PDFium has added it: 0.
        if owner not in (0, known):
            style, known = _read_style(text, index, style), owner
        glyphs.append(_read_glyph(text, index, character, style))
    text.close()
    page.close()
    return glyphs


def _read_style(text: pypdfium2.PdfTextPage, index: int, before: _Style) -> _Style:
    """Read how a character is printed; one that PDFium has added is like the one before it."""
    matrix, name = pdfium.FS_MATRIX(), ctypes.create_string_buffer(200)
    if not pdfium.FPDFText_GetMatrix(text, index, matrix):
        return before
    pdfium.FPDFText_GetFontInfo(text, index, name, 200, ctypes.c_int())
    size = pdfium.FPDFText_GetFontSize(text, index) * math.hypot(matrix.c, matrix.d)
    return _Style(
        quarter=round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4,
        size=max(size, 1.0),
        is_bold=_BOLD.search(name.value.decode("latin-1")) is not None,
    )


def _read_glyph(text: pypdfium2.PdfTextPage, index: int, character: str, style: _Style) -> _Glyph:
    """Read the place of a character."""
    box, x, y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    pdfium.FPDFText_GetLooseCharBox(text, index, box)
    pdfium.FPDFText_GetCharOrigin(text, index, x, y)
    sides = [
        _turn(*each, style.quarter)[0] for each in ((box.left, box.bottom), (box.right, box.top))
    ]
    base = _turn(x.value, y.value, style.quarter)[1]
    return _Glyph(character, min(sides), max(sides), base, style)


def _turn(x: float, y: float, quarter: int) -> tuple[float, float]:
    """Rotate a point by quarter turns, so that turned text runs from left to right."""
    return ((x, y), (y, -x), (-x, -y), (-y, x))[quarter]


def _is_unknown(character: str) -> bool:
    return character in "\0\ufffd" or unicodedata.category(character) in ("Cc", "Co", "Cn")


def _read_pieces(glyphs: list[_Glyph | None]) -> list[list[Piece]]:
    """Join the characters of a page into pieces, in each direction of writing apart."""
    ways: dict[int, list[Piece]] = {}
    joined: list[_Glyph] = []
    for glyph in [*glyphs, None]:
        if glyph is not None and (not joined or _continues(joined, glyph)):
            joined.append(glyph)
            continue
        if any(not each.character.isspace() for each in joined):
            ways.setdefault(joined[0].style.quarter, []).append(_make_piece(joined))
        joined = [] if glyph is None else [glyph]
    return sorted(ways.values(), key=lambda way: -sum(len(each.text) for each in way))


def _continues(joined: list[_Glyph], glyph: _Glyph) -> bool:
    """Whether a character stands beside the last one, in whatever direction its script runs."""
    if glyph.character.isspace():
        return True
    last = next((each for each in reversed(joined) if not each.character.isspace()), joined[-1])
    size = max(last.style.size, glyph.style.size)
    gap = max(glyph.left - last.right, last.left - glyph.right)
    is_level = abs(glyph.base - last.base) < size / 2
    is_turned = glyph.style.quarter != last.style.quarter
    return is_level and not is_turned and gap < _WIDEST_SPACE * size


def _make_piece(glyphs: list[_Glyph]) -> Piece:
    shown = [each for each in glyphs if not each.character.isspace()]
    sizes = sorted(shown, key=lambda each: each.style.size)
    middle = sizes[len(sizes) // 2]
    return Piece(
        text=_write_text("".join(each.character for each in glyphs)),
        left=min(each.left for each in shown),
        right=max(each.right for each in shown),
        base=middle.base,
        size=middle.style.size,
        is_bold=all(each.style.is_bold for each in shown),
    )


def _write_text(characters: str) -> str:
    """Write what characters say: ligatures as letters, halves of pairs joined, one space each."""
    for many in (_HYPHENS, _LIGATURES):
        for character, said in many.items():
            characters = characters.replace(character, said)
    characters = _DINGBAT.sub("•", characters, count=1)
    whole = characters.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    whole = "".join("" if _is_unknown(each) else each for each in whole)
    return " ".join(whole.split(" ")) if whole.strip() else ""
