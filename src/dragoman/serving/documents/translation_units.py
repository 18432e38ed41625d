"""XLIFF 1.2 and 2, and TMX: units without a translation get one, to be reviewed."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import ParseError

from defusedxml import DefusedXmlException, ElementTree  # type: ignore[import-untyped]

from dragoman.data.tmx import matches
from dragoman.serving.documents.text_documents import Document, Translated
from dragoman.serving.markup.markup import ParsedMarkup, parse_tokens
from dragoman.serving.markup.markup_elements import Elements, match_elements
from dragoman.serving.markup.markup_tokens import Token, encode_text, read_attributes, split_xml
from dragoman.serving.markup.placeholders import protect_placeholders, with_plurals
from dragoman.serving.markup.tag_rules import TagRules
from dragoman.serving.service_types import ServiceError

_XML = TagRules(is_xml=True)
_NATIVE = frozenset(("ph", "bpt", "ept", "it", "ut", "x", "bx", "ex"))
"""Inline elements that hold, or stand for, codes of the original format."""
# Elements that open and close a span of text which is no element.
_OPENERS, _CLOSERS = ("bpt", "bx", "sc", "sm"), ("ept", "ex", "ec", "em")
_UNTRANSLATED = ("new", "needs-translation", "initial")
_PAIR = "pair"


@dataclass(frozen=True, kw_only=True)
class _Element:
    """An element: the places of its first and last token, and its attributes."""

    first: int
    last: int
    attributes: dict[str, str]

    @property
    def content(self) -> slice:
        return slice(self.first + 1, self.last)


@dataclass(frozen=True, kw_only=True)
class _Edit:
    """What replaces a range of tokens: fixed text around a translation."""

    first: int
    end: int
    opening: str
    marked: ParsedMarkup | None
    closing: str = ""


class _File:
    """The tokens of a file and what they are inside of."""

    def __init__(self, text: str) -> None:
        try:
            ElementTree.fromstring(text)  # Old memories name their DTD; it is not read.
        except (ParseError, DefusedXmlException, ValueError, LookupError):
            raise _bad_request("the file is wrong or hostile XML") from None
        self.tokens = list(split_xml(text))
        self._elements: Elements = match_elements(self.tokens, _XML)
        self._children: dict[int, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.kind in ("start", "empty"):
                self._children.setdefault(self._elements.parents[place], []).append(place)

    def find_all(self, name: str) -> list[_Element]:
        """Find all elements of a name, whatever its prefix."""
        return [
            self._make(place)
            for place, token in enumerate(self.tokens)
            if token.kind in ("start", "empty") and _local(token) == name
        ]

    def find_in(self, element: _Element, name: str) -> list[_Element]:
        """Find the elements of a name right inside of another."""
        places = self._children.get(element.first, [])
        return [self._make(place) for place in places if _local(self.tokens[place]) == name]

    def is_excluded(self, element: _Element) -> bool:
        """Whether an element, or what is around it, says that it is not to be translated."""
        place = element.first
        while place >= 0:
            said = _attributes(self.tokens[place]).get("translate")
            if said is not None:
                return said.strip() == "no"
            place = self._elements.parents[place]
        return False

    def has_text(self, element: _Element) -> bool:
        """Whether there is anything but white space in an element."""
        return any(token.raw.strip() for token in self.tokens[element.content])

    def _make(self, place: int) -> _Element:
        return _Element(
            first=place,
            last=self._elements.lasts[place],
            attributes=_attributes(self.tokens[place]),
        )


def read_xliff(text: str, encode: Callable[[str], bytes], target: str) -> Document:
    """Parse XLIFF; `target` becomes its target language if it has none.

    Notes
    -----
    Units that are approved, final or not to be translated stay, and so do translations that are
    not marked as new. What is translated is marked: in XLIFF 1.2 as “needs-review-translation”, in
    XLIFF 2, where that is what it means, as “translated”.
    """
    file = _File(text)
    roots = file.find_all("xliff")
    if not roots:
        raise _bad_request("the file has no element “xliff”")
    is_second = roots[0].attributes.get("version", "").startswith("2")
    edits: list[_Edit] = []
    named, name = (roots, "trgLang") if is_second else (file.find_all("file"), "target-language")
    for element in named if target else ():
        said = element.attributes.get(name)
        if said is None:
            raw = _set_attribute(file.tokens[element.first].raw, name, target)
            edits.append(
                _Edit(first=element.first, end=element.first + 1, opening=raw, marked=None)
            )
        elif not matches(said, target):
            raise _bad_request(
                f"the file is for translations into “{said[:80]}”, not “{target}”; choose that "
                f"language, or remove {name}"
            )
    for unit in file.find_all("segment" if is_second else "trans-unit"):
        edits += _edit_segment(file, unit) if is_second else _edit_unit(file, unit)
    return _make_document(file.tokens, edits, encode)


def read_tmx(text: str, encode: Callable[[str], bytes], target: str) -> Document:
    """Parse a translation memory: units without the target language get a variant in it."""
    file = _File(text)
    headers = file.find_all("header")
    common = headers[0].attributes.get("srclang", "") if headers else ""
    edits: list[_Edit] = []
    for unit in file.find_all("tu"):
        variants = file.find_in(unit, "tuv")
        if any(matches(_language(each), target) for each in variants):
            continue
        wanted = unit.attributes.get("srclang", common)
        source = next((each for each in variants if matches(_language(each), wanted)), None)
        source = source or next(iter(variants), None)
        segments = [] if source is None else file.find_in(source, "seg")
        marked = _parse_content(file, segments[0]) if segments else None
        if source is None or marked is None:
            continue
        last = variants[-1].last
        indent = _indent_before(file.tokens, variants[-1].first)
        tuv, seg = file.tokens[source.first].name, file.tokens[segments[0].first].name
        edits.append(
            _Edit(
                first=last + 1,
                end=last + 1,
                opening=f'{indent}<{tuv} xml:lang="{target}" creationid="MT"><{seg}>',
                marked=marked,
                closing=f"</{seg}></{tuv}>",
            )
        )
    return _make_document(file.tokens, edits, encode)


def _edit_unit(file: _File, unit: _Element) -> list[_Edit]:
    """Edit a unit of XLIFF 1.2."""
    sources, targets = file.find_in(unit, "source"), file.find_in(unit, "target")
    is_done = unit.attributes.get("approved") == "yes" or file.is_excluded(unit)
    if is_done or not sources:
        return []
    state = targets[0].attributes.get("state") if targets else None
    if targets and file.has_text(targets[0]) and state not in _UNTRANSLATED:
        return []
    marked = _parse_content(file, sources[0])
    after = [*file.find_in(unit, "seg-source"), sources[0]][0]
    return _edit_target(file, after, targets, marked, "needs-review-translation")


def _edit_segment(file: _File, segment: _Element) -> list[_Edit]:
    """Edit a segment of XLIFF 2."""
    sources, targets = file.find_in(segment, "source"), file.find_in(segment, "target")
    state = segment.attributes.get("state")
    if not sources or file.is_excluded(segment) or state not in (None, *_UNTRANSLATED):
        return []
    if targets and file.has_text(targets[0]) and state is None:
        return []
    marked = _parse_content(file, sources[0])
    edits = _edit_target(file, sources[0], targets, marked, None)
    if not edits:
        return []
    raw = _set_attribute(file.tokens[segment.first].raw, "state", "translated")
    raw = re.sub(r"\s+subState\s*=\s*(?:\"[^\"]*\"|'[^']*')", "", raw)
    opening = _Edit(first=segment.first, end=segment.first + 1, opening=raw, marked=None)
    return [opening, *edits]


def _edit_target(
    file: _File,
    after: _Element,
    targets: Sequence[_Element],
    marked: ParsedMarkup | None,
    state: str | None,
) -> list[_Edit]:
    """Write the translation into the target that is there, or a new one."""
    if marked is None:
        return []
    tokens = file.tokens
    if targets:
        first, end = targets[0].first, targets[0].last + 1
        name = tokens[first].name
        raw = re.sub(r"\s*/>\Z", ">", tokens[first].raw)
        raw = _set_attribute(raw, "state", state) if state else raw
    else:
        first = end = after.last + 1
        prefix, colon, _ = tokens[after.first].name.rpartition(":")
        name = f"{prefix}{colon}target"
        said = f' state="{state}"' if state else ""
        raw = f"{_indent_before(tokens, after.first)}<{name}{said}>"
    return [_Edit(first=first, end=end, opening=raw, marked=marked, closing=f"</{name}>")]


def _parse_content(file: _File, element: _Element) -> ParsedMarkup | None:
    """Parse the content of an element; None: it has no text to translate."""
    tokens = _join_codes(file.tokens[element.content])
    try:
        marked = parse_tokens(protect_placeholders(tokens), with_plurals(_XML))
    except ServiceError:  # Plural forms begin in one element and end in another.
        return None
    return marked if marked.segments else None


def _join_codes(tokens: Sequence[Token]) -> list[Token]:
    """Join each inline code into one token, and opening and closing codes into pairs."""
    elements = match_elements(tokens, _XML)
    joined: list[Token] = []
    open_tags: list[tuple[int, str]] = []  # Place in `joined`, and the key of what closes it.
    place = 0
    while place < len(tokens):
        token, last = _open_section(tokens[place]), elements.lasts[place]
        name, attributes = _local(token), _attributes(token)
        is_whole = token.kind == "empty" or name in _NATIVE or attributes.get("translate") == "no"
        is_whole = is_whole or attributes.get("mtype") == "protected"
        if token.kind in ("start", "empty") and is_whole:
            raw = "".join(each.raw for each in tokens[place : last + 1])
            joined.append(Token("other", raw))
            _pair(joined, open_tags, name, attributes)
            place = last + 1
            continue
        if token.kind == "start":
            open_tags.append((len(joined), ""))
        elif token.kind == "end":
            while open_tags and open_tags.pop()[1]:
                pass  # What closes a code that is left open here is left alone, too.
        joined.append(token)
        place += 1
    return joined


def _open_section(token: Token) -> Token:
    """Make text of a CDATA section."""
    if not token.raw.startswith("<![CDATA["):
        return token
    return Token("text", encode_text(token.raw.removeprefix("<![CDATA[").removesuffix("]]>")))


def _pair(
    joined: list[Token], open_tags: list[tuple[int, str]], name: str, attributes: dict[str, str]
) -> None:
    """Make a span of two codes, if nothing was opened in between that is not closed."""
    key = next(
        (attributes[each] for each in ("startRef", "rid", "i", "id") if each in attributes), ""
    )
    if name in _OPENERS and key:
        open_tags.append((len(joined) - 1, f"{_OPENERS.index(name)} {key}"))
    elif name in _CLOSERS and open_tags and open_tags[-1][1] == f"{_CLOSERS.index(name)} {key}":
        place, _ = open_tags.pop()
        joined[place] = joined[place]._replace(kind="start", name=_PAIR)
        joined[-1] = joined[-1]._replace(kind="end", name=_PAIR)


def _make_document(
    tokens: Sequence[Token], edits: Sequence[_Edit], encode: Callable[[str], bytes]
) -> Document:
    """Make a document of tokens and what replaces some of them."""
    ordered = sorted(edits, key=lambda each: (each.first, each.end))

    def write(translations: Sequence[Translated]) -> bytes:
        rest = iter(translations)
        written: list[str] = []
        place = 0
        for edit in ordered:
            written += [token.raw for token in tokens[place : edit.first]]
            written.append(edit.opening)
            if edit.marked is not None:
                some = list(itertools.islice(rest, len(edit.marked.segments)))
                written.append(
                    re.sub(
                        "[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]", "", edit.marked.rebuild(some)
                    )
                )
            written.append(edit.closing)
            place = edit.end
        return encode("".join([*written, *(token.raw for token in tokens[place:])]))

    texts = [each for edit in ordered if edit.marked for each in edit.marked.segments]
    return Document(texts=texts, write=write)


def _local(token: Token) -> str:
    return token.name.rpartition(":")[2]


def _attributes(token: Token) -> dict[str, str]:
    """Read the attributes of a tag; their names keep their case."""
    if token.kind not in ("start", "empty"):
        return {}
    values = read_attributes(token.raw)
    names = re.findall(r"\s([^\s=<>\"']+)\s*=", token.raw)
    return {name: values[name.lower()] for name in names if name.lower() in values}


def _set_attribute(raw: str, name: str, value: str) -> str:
    """Set an attribute of a tag."""
    written = f'{name}="{encode_text(value)}"'
    pattern = rf"(?<=\s){name}\s*=\s*(?:\"[^\"]*\"|'[^']*')"
    if re.search(pattern, raw):
        return re.sub(pattern, lambda _: written, raw, count=1)
    return re.sub(r"\s*(/?>)\Z", lambda match: f" {written}{match.group(1)}", raw)


def _indent_before(tokens: Sequence[Token], place: int) -> str:
    """Return the white space before a token, for another to stand below."""
    raw = tokens[place - 1].raw if place and tokens[place - 1].kind == "text" else ""
    return raw if raw.isspace() else ""


def _language(variant: _Element) -> str:
    return variant.attributes.get("xml:lang") or variant.attributes.get("lang") or ""


def _bad_request(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {reason}")
