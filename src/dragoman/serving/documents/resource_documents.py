"""Resource files of programs in JSON and YAML: values are translated, in their places."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml  # type: ignore[import-untyped]

from dragoman.serving.documents.slots import Slot, fill_slots
from dragoman.serving.documents.text_documents import Document, check_length
from dragoman.serving.markup.placeholders import parse_message
from dragoman.serving.service_types import ServiceError

MOST_YAML = 1_000_000
"""Characters of a YAML file, which is read slowly."""
MOST_DEPTH = 200
"""Objects inside of objects, beyond which a file is refused."""

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"|[{}\[\]:,]')
_STRING_TAG = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*+\s++)*+")


def read_json(text: str, encode: Callable[[str], bytes]) -> Document:
    """Parse JSON: strings that are values; keys, and values of keys with “@”, stay."""
    try:
        json.loads(text, parse_int=_check_nothing, parse_constant=_refuse_constant)
    except RecursionError:
        raise _bad_request("the file has objects in objects too deep") from None
    except ValueError as error:
        raise _bad_request(f"the file is not JSON ({error})") from None
    is_ascii = text.isascii() and "\\u" in text
    slots = []
    for begin, end in _find_json_values(text):
        value = json.loads(text[begin:end])
        if _is_translatable(value):
            slots.append(_make_slot(text, begin, end, value, _write_json(is_ascii)))
    return fill_slots(text, slots, encode)


def read_yaml(text: str, encode: Callable[[str], bytes]) -> Document:
    """Parse YAML: strings that are values; comments, quotation marks and layout stay."""
    check_length(len(text), MOST_YAML)
    slots = []
    try:
        for event, is_in_flow in _find_yaml_values(text):
            begin, end = event.start_mark.index, event.end_mark.index
            if event.anchor is not None or event.tag is not None:  # They stand before it.
                properties = _PROPERTIES.match(text, begin, end)
                begin = begin if properties is None else properties.end()
            if _is_translatable(event.value):
                write = _write_yaml(text[begin:end], event.style, is_in_flow)
                slots.append(_make_slot(text, begin, end, event.value, write))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "somewhere"
        reason = getattr(error, "problem", None) or "a character that may not be there"
        raise _bad_request(f"the file is not YAML ({where}: {reason})") from None
    return fill_slots(text, slots, encode)


def _find_json_values(text: str) -> Iterator[tuple[int, int]]:
    """Find the strings that are values, with their quotation marks."""
    skipped_at: list[bool] = []  # For each open object: whether it belongs to a key with “@”.
    key: str | None = None
    tokens = list(_JSON_TOKEN.finditer(text))
    for match, following in zip(tokens, [*tokens[1:], None], strict=True):
        raw = match.group()
        is_skipped = (bool(skipped_at) and skipped_at[-1]) or (key or "").startswith("@")
        if raw in ("{", "["):
            skipped_at.append(is_skipped)
            key = None
        elif raw in ("}", "]"):
            skipped_at.pop()
            key = None
        elif raw == ",":
            key = None
        elif raw != ":":
            if following is not None and following.group() == ":":
                key = json.loads(raw)
            elif not is_skipped:
                yield match.span()


def _find_yaml_values(text: str) -> Iterator[tuple[Any, bool]]:
    """Find the scalars that are strings and no keys, and whether each is in brackets."""
    resolver = yaml.resolver.Resolver()
    # Of each: whether it is a mapping, its next node is a key, it is skipped, it is in brackets.
    open_nodes: list[list[bool]] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            open_nodes.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        is_key = is_skipped = is_in_flow = False
        if open_nodes:
            is_mapping, is_key, is_skipped, is_in_flow = open_nodes[-1]
            open_nodes[-1][1] = is_mapping and not is_key
        if isinstance(event, yaml.CollectionStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            is_in_flow = is_in_flow or bool(event.flow_style)
            open_nodes.append([is_mapping, is_mapping, is_key or is_skipped, is_in_flow])
            if len(open_nodes) > MOST_DEPTH:
                raise _bad_request("the file has objects in objects too deep")
        elif isinstance(event, yaml.ScalarEvent) and not (is_key or is_skipped):
            tag = event.tag
            if tag is None or tag == "!":
                tag = resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
            if tag == _STRING_TAG:
                yield event, is_in_flow


def _is_translatable(value: str) -> bool:
    """Whether a value has letters, and no half of a surrogate pair."""
    return any(map(str.isalpha, value)) and not re.search("[\ud800-\udfff]", value)


def _make_slot(text: str, begin: int, end: int, value: str, write: Callable[[str], str]) -> Slot:
    """Make the slot of a value, which keeps its spelling where it is not changed."""
    raw = text[begin:end]
    return Slot(
        begin=begin,
        end=end,
        message=parse_message(value),
        encode=lambda shown: raw if shown == value else write(shown),
    )


def _write_json(is_ascii: bool) -> Callable[[str], str]:
    return lambda shown: json.dumps(shown, ensure_ascii=is_ascii)


def _write_yaml(raw: str, style: str | None, is_in_flow: bool) -> Callable[[str], str]:
    """Choose how to write a scalar: in its style, or in double quotation marks if need be."""

    def write(shown: str) -> str:
        if style in ("|", ">"):
            return _write_block(raw, style, shown)
        if not _is_printable(shown) or "\n" in shown or style == '"':
            return _quote(shown)
        if style == "'":
            return "'" + shown.replace("'", "''") + "'"
        return shown if _is_plain(shown, is_in_flow) else _quote(shown)

    return write


def _is_plain(shown: str, is_in_flow: bool) -> bool:
    """Whether a text means itself without quotation marks."""
    try:
        return yaml.safe_load(f"[{shown}]" if is_in_flow else f"- {shown}") == [shown]
    except (yaml.YAMLError, ValueError):  # such as of a date that is none
        return False


def _write_block(raw: str, style: str, shown: str) -> str:
    """Write a block scalar with the header, indentation and end of the one that was there."""
    header, _, body = raw.partition("\n")
    lines = [line for line in body.split("\n") if line.strip()]
    digit = re.match(r"[|>][-+]?(\d)", header)
    least = min(len(line) - len(line.lstrip(" ")) for line in lines)
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" "))]
    if digit:  # More of the first line is text.
        indent = " " * least
    is_folded = style == ">" and not re.search(r"^[ \t]", shown, re.MULTILINE)
    if style == ">" and not is_folded:
        header = f"|{header[1:]}"
    inside = shown.rstrip("\n")
    if not _is_printable(inside.replace("\n", "")):
        return _quote(shown)
    if is_folded:
        inside = re.sub(r"\n+", lambda match: f"\n{match.group()}", inside)
    written = "\n".join(f"{indent}{line}" if line else "" for line in inside.split("\n"))
    carriage = "\r" if header.endswith("\r") else ""
    written = written.replace("\n", f"{carriage}\n")
    return f"{header}\n{written}{raw[len(raw.rstrip()) :]}"


def _quote(shown: str) -> str:
    """Write a scalar in double quotation marks; JSON's are YAML's."""
    return "".join(
        each if _is_printable(each) else f"\\U{ord(each):08x}"
        for each in json.dumps(shown, ensure_ascii=False)
    )


def _is_printable(text: str) -> bool:
    """Whether YAML takes a text as it is."""
    return not yaml.reader.Reader.NON_PRINTABLE.search(text) and not re.search(
        "[\u0085\u2028\u2029\ufeff]", text
    )


def _check_nothing(digits: str) -> str:
    """Leave a number unread: it may have any length."""
    return digits


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number of JSON")


def _bad_request(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {' '.join(reason.split())[:200]}")
