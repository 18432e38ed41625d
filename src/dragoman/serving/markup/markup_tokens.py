"""Lossless tokeniser of HTML and XML: joined tokens are the input."""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dragoman.serving.service_types import ServiceError

TokenKind = Literal["text", "start", "end", "empty", "other", "declaration"]

# Possessive quantifiers: linear time on hostile input.
_ATTRIBUTE = (
    r"[^\s/>][^\s/>=]*+"
    r"(?:\s*+=\s*+(?:\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z)|[^\s>\"'][^\s>]*+|(?=>)))?+"
)
_HTML_TAG = re.compile(rf"</?([a-zA-Z][^\s/>]*+)(?:[\s/]++|{_ATTRIBUTE})*+>")
_HTML_ATTRIBUTE = re.compile(
    r"([^\s/>=]++)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"'][^\s>]*+)))?+"
)
_HTML_COMMENT = re.compile(r"<!--(?:>|->|.*?(?:--!?>|\Z))", re.DOTALL)
_HTML_DECLARATION = re.compile(r"<[!?/][^>]*+(?:>|\Z)")
_HTML_REFERENCE = re.compile(
    r"&(?:#[0-9]{1,7}+(?![0-9]);?|#[xX][0-9a-fA-F]{1,6}+(?![0-9a-fA-F]);?|"
    r"[a-zA-Z][a-zA-Z0-9]{1,31}+;?)"
)

_XML_NAME = r"[^\W\d][\w.:\u00b7-]*+"
_XML_TAG = re.compile(
    rf"<(/)?({_XML_NAME})(?:\s++{_XML_NAME}\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*+\s*+(/)?>"
)
_XML_OTHER = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_XML_DECLARATION = re.compile(r"<!DOCTYPE(?:\"[^\"]*+\"|'[^']*+'|[^\"'\[>])*+>")
_XML_REFERENCE = re.compile(rf"&(#[0-9]{{1,9}}|#x[0-9a-fA-F]{{1,8}}|{_XML_NAME});")
_XML_NAMED = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}

_RAW_TEXT = frozenset(("script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext"))
_TEXT_ONLY = frozenset(("title", "textarea"))
_VOID_NAMES = (
    "area base basefont bgsound br col embed frame hr img input keygen link meta param source "
    "track wbr"
)
_VOID = frozenset(_VOID_NAMES.split())


class Token(NamedTuple):
    """A token of markup.

    Parameters
    ----------
    kind : TokenKind
        “text” is for people; “start”, “end” and “empty” (an element without content) are tags,
        “declaration” stands before all content, and “other” is what nobody reads: comments,
        scripts, references to entities that are defined elsewhere.
    raw : str
        As it stood there.
    name : str
        Of the element, in small letters for HTML; nothing if it is no tag.
    shown : str | None
        Of a text what it says, where that depends on what is before it; None: what its format
        makes of `raw`.
    """

    kind: TokenKind
    raw: str
    name: str = ""
    shown: str | None = None


def split_html(text: str) -> Iterator[Token]:
    """Tokenise HTML as browsers do.

    Notes
    -----
    Nothing is refused but declared entities, which no browser knows. Elements that close themselves
    (``<x/>``) are taken as empty, as in XML, whatever their name.
    """
    place = 0
    while place < len(text):
        found = text.find("<", place)
        if found < 0:
            yield Token("text", text[place:])
            return
        if found > place:
            yield Token("text", text[place:found])
        token = _html_token(text, found)
        yield token
        place = found + len(token.raw)
        if token.kind == "start" and token.name in _RAW_TEXT | _TEXT_ONLY:
            closing = re.compile(rf"</{token.name}(?=[\s/>])", re.IGNORECASE).search(text, place)
            end = closing.start() if closing and token.name != "plaintext" else len(text)
            if end > place:
                yield Token("text" if token.name in _TEXT_ONLY else "other", text[place:end])
            place = end


def split_xml(text: str) -> Iterator[Token]:
    """Tokenise XML.

    Notes
    -----
    A declaration of entities is refused, so nothing can grow by being read, and nothing is ever
    fetched. A reference to any other entity than the five that all XML has is kept as it is.
    """
    place = 0
    while place < len(text):
        found = text.find("<", place)
        end = len(text) if found < 0 else found
        yield from _split_references(text[place:end])
        if found < 0:
            return
        token = _xml_token(text, found)
        yield token
        place = found + len(token.raw)


def decode_html(raw: str) -> str:
    """Decode HTML character references."""
    return _HTML_REFERENCE.sub(lambda match: html.unescape(match.group()), raw)


def decode_xml(raw: str) -> str:
    """Decode XML character references."""
    return _XML_REFERENCE.sub(lambda match: _xml_character(match.group(1)) or match.group(), raw)


def encode_text(text: str) -> str:
    """Escape text for markup."""
    return html.escape(text, quote=False)


def read_attributes(raw: str) -> dict[str, str]:
    """Parse the attributes of an HTML tag."""
    inside = re.match(r"</?[a-zA-Z][^\s/>]*+", raw)
    attributes: dict[str, str] = {}
    for match in _HTML_ATTRIBUTE.finditer(raw, inside.end() if inside else 0):
        value = next((each for each in match.groups()[1:] if each is not None), "")
        attributes.setdefault(match.group(1).lower(), decode_html(value))
    return attributes


def find_attributes(raw: str) -> Iterator[tuple[str, int, int]]:
    """Find the attributes of a tag that have values: name, begin and end of the value."""
    inside = re.match(r"</?[a-zA-Z][^\s/>]*+", raw)
    for match in _HTML_ATTRIBUTE.finditer(raw, inside.end() if inside else 0):
        group = match.lastindex or 0
        if group > 1:
            yield match.group(1).lower(), *match.span(group)


def _html_token(text: str, place: int) -> Token:
    """Read the HTML token that begins with “<”."""
    following = text[place + 1 : place + 3]
    if following[:1].isascii() and (following[:1].isalpha() or re.match("/[a-zA-Z]", following)):
        match = _HTML_TAG.match(text, place)
        if match is None:  # A tag that never ends has swallowed the rest.
            return Token("other", text[place:])
        name = match.group(1).lower()
        if following.startswith("/"):
            return Token("end", match.group(), name)
        is_empty = name in _VOID or match.group().endswith("/>")
        return Token("empty" if is_empty else "start", match.group(), name)
    comment = _HTML_COMMENT.match(text, place)
    if comment:
        return Token("other", comment.group())
    if following[:1] in ("!", "?", "/"):
        declaration = _HTML_DECLARATION.match(text, place)
        assert declaration is not None
        _refuse_entities(declaration.group(), place)
        return Token("declaration", declaration.group())
    return Token("text", "<")


def _xml_token(text: str, place: int) -> Token:
    """Read the XML token that begins with “<”, or raise."""
    match = _XML_TAG.match(text, place)
    if match:
        is_end, name, is_empty = match.groups()
        if not (is_end and is_empty):
            kind: TokenKind = "end" if is_end else "empty" if is_empty else "start"
            return Token(kind, match.group(), name)
    other = _XML_OTHER.match(text, place)
    if other:
        kind = "declaration" if other.group().startswith("<?") else "other"
        return Token(kind, other.group())
    _refuse_entities(text[place : place + 10_000], place)
    declaration = _XML_DECLARATION.match(text, place)
    if declaration:
        return Token("declaration", declaration.group())
    raise ServiceError(
        "bad_request",
        f"Tag handling parsing failed: character {place + 1} begins no tag of XML; write “<” in "
        "text as &lt;",
    )


def _refuse_entities(raw: str, place: int) -> None:
    """Refuse an internal DTD subset, which could declare entities."""
    if re.match(r"<!(?:ENTITY|DOCTYPE[^>]*\[)", raw, re.IGNORECASE):
        raise ServiceError(
            "bad_request",
            f"Tag handling parsing failed: character {place + 1} declares entities; leave them out",
        )


def _split_references(raw: str) -> Iterator[Token]:
    """Split XML text at references to external entities."""
    place = 0
    for match in _XML_REFERENCE.finditer(raw):
        if _xml_character(match.group(1)) is None:
            if match.start() > place:
                yield Token("text", raw[place : match.start()])
            yield Token("other", match.group())
            place = match.end()
    if place < len(raw):
        yield Token("text", raw[place:])


def _xml_character(reference: str) -> str | None:
    """Return the character of a reference; None: unknown or not allowed in XML."""
    if not reference.startswith("#"):
        return _XML_NAMED.get(reference)
    is_hexadecimal = reference.startswith("#x")
    code = int(reference[2:], 16) if is_hexadecimal else int(reference[1:])
    is_character = code in (0x9, 0xA, 0xD) or 0x20 <= code < 0xD800 or 0xE000 <= code < 0x110000
    return chr(code) if is_character and code not in (0xFFFE, 0xFFFF) else None
