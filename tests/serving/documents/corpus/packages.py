"""What a package of XML says: an oracle that shares nothing with the code under test."""

import io
import re
import zipfile

from lxml import etree

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
C = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
HTML = "{http://www.w3.org/1999/xhtml}"
DC = "{http://purl.org/dc/elements/1.1/}"
NCX = "{http://www.daisy.org/z3986/2005/ncx/}"
MATHML = "{http://www.w3.org/1998/Math/MathML}"

# Of Office: what holds a text that is read as one, what of it is shown, and what is not.
HEADS = {f"{S}{name}{end}" for name in ("odd", "even", "first") for end in ("Header", "Footer")}
UNITS = {*HEADS, f"{W}p", f"{A}p", f"{S}si", f"{S}is", f"{S}text", f"{C}v"}
SHOWN = {*HEADS, f"{W}t", f"{A}t", f"{S}t", f"{C}v"}
HIDDEN = {
    *(f"{W}{name}" for name in ("del", "moveFrom", "instrText", "rt")),
    f"{M}oMath", f"{A}fld", f"{C}numCache", f"{C}numLit",
}  # fmt: skip
# Of OpenDocument: fields, and what is no text of the document.
OPEN_UNITS = {f"{TEXT}p", f"{TEXT}h", f"{SVG}title", f"{SVG}desc"}
OPEN_HIDDEN = {
    *(f"{TEXT}{name}" for name in (
        "tracked-changes", "ruby-text", "note-citation", "page-number", "page-count", "date",
        "time", "initial-creator", "bookmark-ref", "sheet-name", "title", "file-name", "sequence",
    )),
    *(f"{OFFICE}{name}" for name in ("styles", "automatic-styles", "scripts", "font-face-decls")),
    f"{DC}creator", f"{DC}date", f"{MATHML}math",
}  # fmt: skip
# Of books: tags at which a text ends, and what is not translated.
BOOK_UNITS = {
    *(f"{HTML}{name}" for name in (
        "p", "h1", "h2", "h3", "h4", "li", "td", "th", "dt", "dd", "title", "figcaption",
        "blockquote", "section", "div", "body", "aside", "html",
    )),
    f"{DC}title", f"{NCX}text",
}  # fmt: skip
BOOK_HIDDEN = {*(f"{HTML}{name}" for name in ("code", "pre", "script", "style")), f"{MATHML}math"}
HOLDERS = {
    "office": (UNITS, SHOWN, HIDDEN),
    "open": (OPEN_UNITS, None, OPEN_HIDDEN),
    "book": (BOOK_UNITS, None, BOOK_HIDDEN),
}

ATTRIBUTES = frozenset(
    ("descr", "title", "alt", "tooltip", "prompt", "promptTitle", "error", "errorTitle")
)
"""Names of attributes that people read."""
_RUNS = {f"{W}r": f"{W}t", f"{A}r": f"{A}t"}
_LOOKS = (f"{W}rPr", f"{A}rPr")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def unpack(content):
    """Give the parts of a package."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def parse(part):
    """Parse a part as XML."""
    return etree.fromstring(part, etree.XMLParser(resolve_entities=False, no_network=True))


def list_texts(part, family):
    """List the texts of a part: of each unit without those in it, and of attributes."""
    units, shown, hidden = HOLDERS[family]
    texts = []

    def walk(element, unit):
        if not isinstance(element.tag, str) or element.tag in hidden or _is_number(element):
            return
        if element.tag == f"{SVG}desc" and re.fullmatch(r"\w+\.\w+:\w+\.\w+", element.text):
            return  # the cells of a sheet that a chart shows
        texts.extend([value] for _, value in read_attributes(element))
        if element.tag in units:
            unit = []
            texts.append(unit)
        if shown is None or element.tag in shown:
            is_head = element.tag in HEADS
            text = element.text or ""
            unit.append(re.sub(r'&("[^"]*"|K\w{6}|\d+|.)', "", text) if is_head else text)
        for each in element:
            walk(each, unit)
            if each.tag not in _RUNS and (shown is None or element.tag in shown):
                unit.append(each.tail or "")

    walk(parse(part), [])
    joined = ["".join("".join(unit).split()) for unit in texts]
    return [each for each in joined if any(map(str.isalpha, each))]


def _is_number(element):
    """Whether an element is a cell of OpenDocument that holds no text, or shows a result."""
    kind = element.get(f"{OFFICE}value-type", "string")
    is_cell = element.tag in (f"{TABLE}table-cell", f"{TABLE}covered-table-cell")
    return is_cell and (kind != "string" or element.get(f"{TABLE}formula") is not None)


def read_attributes(element):
    """Give the attributes that people read, by their names."""
    for name, value in sorted(element.attrib.items()):
        is_file = re.fullmatch(r"\S+\.\w{2,5}", value)
        if etree.QName(name).localname in ATTRIBUTES and value and not is_file:
            yield name, value


def write_canonical(part):
    """Write a part as a list of what it consists of, in which runs have no borders.

    Every character but white space stands with how it looks, and every other element with its
    attributes, so that two parts have the same list exactly if they say the same, word by word, in
    the same looks, at the same places; runs that look the same may be joined, and white space may
    stand on either side of a tag.
    """
    found = []

    def walk(element, look):
        if not isinstance(element.tag, str):
            found.append((str(element.tag), element.text))
        elif element.tag in _RUNS:
            first = next((each for each in element if each.tag in _LOOKS), None)
            inner = "" if first is None else _write_look(first)
            for each in element:
                if each.tag == _RUNS[element.tag]:
                    add(each.text, inner)
                elif each is not first:
                    found.append(("in a run", inner))
                    walk(each, inner)
        elif element.tag != f"{W}proofErr":
            shown = dict(read_attributes(element))
            kept = sorted(set(element.attrib.items()) - set(shown.items()))
            found.append((element.tag, tuple(each for each in kept if each[0] != _SPACE)))
            for value in shown.values():
                add(value, "attribute")
            add(element.text, look)
            for each in element:
                walk(each, look)
                add(each.tail, look)
            found.append(("end", element.tag))

    def add(text, look):
        found.extend((each, look) for each in text or "" if not each.isspace())

    walk(parse(part), "")
    return found


def _write_look(element):
    """Write how a run looks."""
    inside = (etree.tostring(each, method="c14n", with_tail=False) for each in element)
    return re.sub(rb' xmlns:\w+="[^"]*"', b"", b"".join(inside)).decode()
