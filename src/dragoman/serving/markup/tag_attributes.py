"""Attributes that people read, such as the text in place of an image."""

import re

from dragoman.serving.markup.markup_segments import Segment
from dragoman.serving.markup.markup_tokens import (
    Token,
    decode_html,
    encode_text,
    find_attributes,
    read_attributes,
)
from dragoman.serving.markup.tag_placement import Tag
from dragoman.serving.markup.tag_rules import TagRules

_FILE_NAME = re.compile(r"\S+\.\w{2,5}")
_SHOWN_META = frozenset(("description", "og:title", "og:description"))
_BUTTONS = frozenset(("submit", "reset", "button"))


def split_attributes(token: Token, rules: TagRules) -> list[str | Segment]:
    """Split a tag into what stays and the texts of its attributes."""
    if not rules.attributes or token.kind not in ("start", "empty"):
        return [token.raw]
    found = [
        each
        for each in find_attributes(token.raw)
        if f"@{each[0]}" in rules.attributes or f"{token.name}@{each[0]}" in rules.attributes
    ]
    values = read_attributes(token.raw) if found else {}
    is_refused = values.get("translate", "").strip().lower() == "no"
    if not found or is_refused or "notranslate" in values.get("class", "").lower().split():
        return [token.raw]
    parts: list[str | Segment] = []
    place = 0
    for name, begin, end in found:
        whole = decode_html(token.raw[begin:end])
        text = whole.strip()
        is_text = any(map(str.isalpha, text)) and not _FILE_NAME.fullmatch(text)
        if not is_text or not _is_shown(f"{token.name}@{name}", values):
            continue
        quote = "" if token.raw[begin - 1] in "\"'" else '"'
        around = whole.partition(text)
        segment = Segment(
            text=text,
            before=around[0],
            after=around[2],
            root=Tag(end=len(text)),
            encode=_encode,
        )
        parts += [token.raw[place:begin] + quote, segment]
        place = end
        if quote:
            parts.append(quote)
    return [*parts, token.raw[place:]]


def _is_shown(attribute: str, values: dict[str, str]) -> bool:
    """Whether people read an attribute, of which the others of its tag decide."""
    if attribute == "meta@content":
        return values.get("name", values.get("property", "")).lower() in _SHOWN_META
    return attribute != "input@value" or values.get("type", "").lower() in _BUTTONS


def _encode(text: str) -> str:
    """Escape text for an attribute."""
    return encode_text(text).replace('"', "&quot;").replace("'", "&#39;")
