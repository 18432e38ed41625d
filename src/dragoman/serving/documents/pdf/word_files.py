"""Word files written from parts: paragraphs, headings, items, tables, running heads."""

import html
import io
import re
import zipfile
from collections.abc import Sequence

from dragoman.serving.documents.pdf.pdf_parts import Part, PartKind

_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_RUNNING: tuple[PartKind, ...] = ("header", "footer")
_FROM_THE_RIGHT = frozenset(("ar", "fa", "he", "ps", "sd", "ug", "ur", "yi"))
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_INDENT = 360
"""Of items of lists, in twentieths of a point."""
_SIZES = (32, 28, 26, 24, 23, 22)
"""Of headings of each level, in half points; text has 22."""


def write_word(parts: Sequence[Part], language: str) -> bytes:
    """Write a Word file of parts in a language; equal parts give equal bytes."""
    is_reversed = language.split("-")[0] in _FROM_THE_RIGHT
    body = "".join(
        _write_table(part, is_reversed)
        if part.kind == "table"
        else _write_paragraph(part, is_reversed)
        for part in parts
        if part.kind not in _RUNNING
    )
    running = {
        kind: "".join(_write_paragraph(part, is_reversed) for part in parts if part.kind == kind)
        for kind in _RUNNING
    }
    running = {kind: written for kind, written in running.items() if written}
    section = "".join(f'<w:{kind}Reference w:type="default" r:id="{kind}"/>' for kind in running)
    files = {
        "[Content_Types].xml": _write_types(running),
        "_rels/.rels": _write_links({"officeDocument": "word/document.xml"}),
        "word/document.xml": f'<w:document {_W} xmlns:r="{_OFFICE}"><w:body>{body}<w:sectPr>'
        f"{section}</w:sectPr></w:body></w:document>",
        "word/_rels/document.xml.rels": _write_links(
            {"styles": "styles.xml", **{kind: f"{kind}.xml" for kind in running}}
        ),
        "word/styles.xml": _write_styles(language, is_reversed),
    }
    for kind, written in running.items():
        name = "hdr" if kind == "header" else "ftr"
        files[f"word/{kind}.xml"] = f"<w:{name} {_W}>{written}</w:{name}>"
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, f"{_XML}{content}", zipfile.ZIP_DEFLATED)
    return file.getvalue()


def _write_paragraph(part: Part, is_reversed: bool) -> str:
    """Write a paragraph, a heading, an item, or a line of a running head."""
    style = f'<w:pStyle w:val="Heading{part.level}"/>' if part.kind == "heading" else ""
    direction = "<w:bidi/>" if is_reversed else ""
    indent = f'<w:ind w:start="{_INDENT}" w:hanging="{_INDENT}"/>' if part.marker else ""
    tab = "<w:r><w:tab/></w:r>" if part.marker else ""
    runs = f"{_write_run(part.marker, is_reversed)}{tab}{_write_run(part.text, is_reversed)}"
    if part.is_numbered:
        space = " " if part.text else ""
        runs += f'{_write_run(space, is_reversed)}<w:fldSimple w:instr=" PAGE "/>'
    return f"<w:p><w:pPr>{style}{direction}{indent}</w:pPr>{runs}</w:p>"


def _write_run(text: str, is_reversed: bool) -> str:
    if not text:
        return ""
    look = "<w:rPr><w:rtl/></w:rPr>" if is_reversed else ""
    shown = html.escape(_FORBIDDEN.sub("", text), quote=False)
    return f'<w:r>{look}<w:t xml:space="preserve">{shown}</w:t></w:r>'


def _write_table(part: Part, is_reversed: bool) -> str:
    """Write a table with lines around its cells."""
    sides = ("top", "left", "bottom", "right", "insideH", "insideV")
    borders = "".join(f'<w:{side} w:val="single" w:sz="4" w:color="auto"/>' for side in sides)
    direction = "<w:bidiVisual/>" if is_reversed else ""
    rows = "".join(
        "<w:tr>"
        + "".join(
            f"<w:tc><w:tcPr/>{_write_paragraph(Part(kind='paragraph', text=cell), is_reversed)}"
            "</w:tc>"
            for cell in row
        )
        + "</w:tr>"
        for row in part.rows
    )
    columns = "<w:gridCol/>" * max(map(len, part.rows))
    return (
        f'<w:tbl><w:tblPr>{direction}<w:tblW w:w="0" w:type="auto"/><w:tblBorders>{borders}'
        f"</w:tblBorders></w:tblPr><w:tblGrid>{columns}</w:tblGrid>{rows}</w:tbl><w:p/>"
    )


def _write_types(running: "dict[PartKind, str]") -> str:
    """Write the media types of all parts."""
    parts: dict[str, str] = {
        "document": "document.main",
        "styles": "styles",
        **{kind: kind for kind in running},
    }
    listed = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{_TYPE}.{kind}+xml"/>'
        for name, kind in parts.items()
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Default Extension="xml" ContentType="application/xml"/>{listed}</Types>'
    )


def _write_links(targets: dict[str, str]) -> str:
    """Write which part points to which others; each link is named after its kind."""
    links = "".join(
        f'<Relationship Id="{kind}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for kind, target in targets.items()
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _write_styles(language: str, is_reversed: bool) -> str:
    """Write the styles of text and headings, and the language."""
    name = "w:bidi" if is_reversed else "w:val"
    headings = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:basedOn w:val="Normal"/><w:next w:val="Normal"/><w:pPr><w:keepNext/>'
        f'<w:outlineLvl w:val="{level - 1}"/></w:pPr><w:rPr><w:b/><w:sz w:val="{size}"/>'
        "</w:rPr></w:style>"
        for level, size in enumerate(_SIZES, start=1)
    )
    said = f'<w:lang {name}="{html.escape(language)}"/>' if language else ""
    return (
        f'<w:styles {_W}><w:docDefaults><w:rPrDefault><w:rPr><w:sz w:val="22"/>{said}</w:rPr>'
        '</w:rPrDefault><w:pPrDefault><w:pPr><w:spacing w:after="120"/></w:pPr></w:pPrDefault>'
        '</w:docDefaults><w:style w:type="paragraph" w:default="1" w:styleId="Normal">'
        f'<w:name w:val="Normal"/></w:style>{headings}</w:styles>'
    )
