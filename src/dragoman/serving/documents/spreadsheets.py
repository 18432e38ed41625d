"""Spreadsheets: what in their parts is no text though it looks like one."""

import re
from collections.abc import Mapping, Sequence

from dragoman.serving.markup.markup_tokens import Token, decode_xml, read_attributes

_STRINGS = ("si", "is", "c:v", "v")
_CELLS = ("table:table-cell", "table:covered-table-cell")
_HEAD = re.compile(r"(?:x:)?(?:odd|even|first)(?:Header|Footer)")
_CODE = (
    r"&amp;(?:(?:&quot;|\")[^\"&]{0,80}(?:&quot;|\")|K[0-9A-Fa-f]{6}|K\d\d[+-]\d{3}|\d{1,3}|[A-Z]"
    r"|&amp;)"
)
"""Of headers of sheets: a font, a colour, a size, or a letter."""


def read_table_names(parts: Mapping[str, bytes]) -> frozenset[str]:
    """Read the names of columns of tables: they must stay the texts of their first cells."""
    text = "\n".join(
        content.decode("utf-8", "replace")
        for name, content in parts.items()
        if name.lower().startswith("xl/tables/")
    )
    tags = re.findall(r"<(?:\w+:)?tableColumn\s[^>]*+>", text)
    return frozenset(read_attributes(each).get("name", "") for each in tags)


def prepare_cells(tokens: Sequence[Token], kept: frozenset[str]) -> list[Token]:
    """Keep spaces of runs, codes of headers, and texts that are names of columns of tables."""
    prepared: list[Token] = []
    begin = 0
    for place, token in enumerate(tokens):
        prepared.append(token)
        name = token.name.removeprefix("x:")
        if name in _STRINGS and token.kind == "start":
            begin = len(prepared)
        elif name in _STRINGS and token.kind == "end":
            texts = [at for at in range(begin, len(prepared)) if prepared[at].kind == "text"]
            whole = "".join(prepared[at].raw for at in texts)
            if decode_xml(whole).strip() in kept:
                for at in texts:
                    prepared[at] = prepared[at]._replace(kind="other")
        before = tokens[place - 1]
        is_in_run = before.name.removeprefix("x:") in ("r", "rPr")
        if name == "t" and token.kind == "start" and is_in_run and "xml:space" not in token.raw:
            prepared[-1] = token._replace(raw=f'{token.raw[:-1]} xml:space="preserve">')
        is_in_head = before.kind == "start" and _HEAD.fullmatch(before.name) is not None
        if token.kind == "text" and is_in_head:
            prepared[-1:] = _split_head(token.raw)
    return prepared


def _split_head(raw: str) -> list[Token]:
    """Split a header of a sheet at its codes, such as that of the number of the page."""
    parts = re.split(f"({_CODE})", raw)
    kinds = {"&amp;L": "declaration", "&amp;C": "declaration", "&amp;R": "declaration"}
    return [
        Token(kinds.get(part, "other") if index % 2 else "text", part)  # type: ignore[arg-type]
        for index, part in enumerate(parts)
        if part
    ]


def keep_values(tokens: Sequence[Token]) -> list[Token]:
    """Keep what cells of OpenDocument show of numbers, dates and results of formulas."""
    kept: list[Token] = []
    inside: list[bool] = []  # Of open cells, and of comments and shapes in them, whether they stay.
    for token in tokens:
        is_box = token.name == "office:annotation" or token.name.startswith("draw:")
        if token.kind == "start" and (is_box or token.name in _CELLS):
            inside.append(not is_box and _is_computed(token.raw))
        elif token.kind == "end" and inside and (is_box or token.name in _CELLS):
            inside.pop()
        is_shown = token.kind == "text" and bool(inside) and inside[-1]
        kept.append(token._replace(kind="other") if is_shown else token)
    return kept


def _is_computed(raw: str) -> bool:
    """Whether a cell holds anything but a text."""
    attributes = read_attributes(raw)
    kind = attributes.get("office:value-type", "string")
    return kind != "string" or "table:formula" in attributes
