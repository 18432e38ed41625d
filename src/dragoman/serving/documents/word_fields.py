"""Fields of Word, such as cross-references: several runs that belong together, joined as a tag."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.serving.markup.markup_tokens import Token

FIELD = "w:field"
"""Name of the tokens around the result of a field; no element is called so."""

_TYPE = re.compile(r"\bw:fldCharType\s*=\s*[\"'](\w+)")
_OF_FIELDS = frozenset(("w:r", "w:rPr", "w:fldChar", "w:instrText", "w:fldData"))
_LONGEST_RUN = 400
"""Tokens of a run that may be part of a field."""


@dataclass(kw_only=True)
class _Field:
    """An open field: where it begins, how deep it stands, and whether its result is being read."""

    place: int
    depth: int
    has_result: bool = False


def join_fields(tokens: Sequence[Token]) -> list[Token]:
    """Join what stands before the result of a field, and behind it, as tags around the result.

    Notes
    -----
    A field is runs beside those of text: one that begins it, its instruction, one before its
    result, and one that ends it. Apart from each other they would be no field any more. Of one that
    ends in another paragraph they stay where they are.
    """
    joined: list[Token] = []
    fields: list[_Field] = []
    depth = place = 0
    while place < len(tokens):
        token = tokens[place]
        if token.name == "w:p":
            fields.clear()
        end = _find_end(tokens, place) if token.name == "w:r" and token.kind == "start" else place
        if end > place:
            run = tokens[place:end]
            raw = "".join(each.raw for each in run)
            joined.append(Token("other", raw))
            for kind in _TYPE.findall(raw):
                _read_kind(kind, joined, fields, depth)
            place = end
            continue
        depth += (token.kind == "start") - (token.kind == "end")
        joined.append(token)
        place += 1
    return joined


def _find_end(tokens: Sequence[Token], place: int) -> int:
    """Find the end of a run that is part of a field; the place itself: it is of anything else."""
    is_part = False
    look = 0  # How deep in the look of the run, which may consist of anything.
    for at in range(place + 1, min(len(tokens), place + _LONGEST_RUN)):
        token = tokens[at]
        if token.name == "w:r":
            return at + 1 if is_part and token.kind == "end" else place
        if token.name == "w:rPr":
            look += (token.kind == "start") - (token.kind == "end")
        elif not look and token.kind != "text" and token.name not in _OF_FIELDS:
            return place
        is_part = is_part or token.name in ("w:fldChar", "w:instrText")
    return place


def _read_kind(kind: str, joined: list[Token], fields: list[_Field], depth: int) -> None:
    """Read a mark of a field, which is in the last token."""
    last = len(joined) - 1
    is_inside = bool(fields) and not fields[-1].has_result  # One field computes another.
    if kind == "begin":
        fields.append(_Field(place=last, depth=depth))
    elif not fields:
        return
    elif kind == "separate" and len(fields) > 0 and is_inside:
        field = fields[-1]
        field.has_result = True
        if all(each.has_result for each in fields) and field.depth == depth:
            joined[field.place :] = [Token("other", _join(joined[field.place :]))]
    elif kind == "end":
        field = fields.pop()
        is_whole = field.depth == depth
        if any(not each.has_result for each in fields) or not is_whole:
            return
        if field.has_result and field.place < last:
            joined[field.place] = joined[field.place]._replace(kind="start", name=FIELD)
            joined[last] = joined[last]._replace(kind="end", name=FIELD)
        elif not field.has_result:
            joined[field.place :] = [Token("other", _join(joined[field.place :]))]


def _join(tokens: Sequence[Token]) -> str:
    return "".join(each.raw for each in tokens)
