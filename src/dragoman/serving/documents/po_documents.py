"""Catalogues of gettext: entries without a translation get one, marked as fuzzy."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from dragoman.serving.documents.slots import Slot, fill_slots
from dragoman.serving.documents.text_documents import Document
from dragoman.serving.markup.placeholders import parse_message
from dragoman.serving.service_types import ServiceError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STATEMENT = re.compile(
    r'\s*(msgctxt|msgid_plural|msgid|msgstr(?:\[\d{1,2}\])?)?\s*"((?:[^"\\]|\\.)*+)"\s*'
)
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_NO_LANGUAGE = re.compile(r'^"Language:\s*\\n"', re.MULTILINE)


@dataclass(kw_only=True, eq=False)
class _Entry:
    """A message: its strings by keyword, with their places in the file."""

    begin: int
    """Where “#,” would stand: before the first line that is no ordinary comment."""
    flags: tuple[int, int] | None = None
    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


def read_po(text: str, encode: Callable[[str], bytes], target: str) -> Document:
    """Parse a catalogue; `target` is named as its language if it names none."""
    slots: list[Slot] = []
    end_of_line = "\r\n" if "\r\n" in text else "\n"
    for entry in _read_entries(text):
        if not entry.texts.get("msgid"):
            header = entry.places.get("msgstr")
            no_language = _NO_LANGUAGE.search(text, *header) if header and target else None
            if no_language and not slots:
                slots.append(_put(no_language.span(), f'"Language: {target}\\n"'))
        elif not any(value for name, value in entry.texts.items() if name.startswith("msgstr")):
            slots += _make_slots(text, entry, end_of_line)
    return fill_slots(text, slots, encode)


def _read_entries(text: str) -> Iterator[_Entry]:
    """Read the entries that are not obsolete."""
    entry: _Entry | None = None
    keyword = ""
    for number, match in enumerate(_LINE.finditer(text), start=1):
        line = match.group()
        has_ended = entry is not None and keyword.startswith("msgstr")
        if not line.strip() or (line.lstrip().startswith("#") and has_ended):
            if entry is not None and has_ended:
                yield entry
            if has_ended or not line.strip():
                entry, keyword = None, ""
        if not line.strip() or line.startswith("#~"):
            continue
        if line.lstrip().startswith("#"):
            if line.startswith(("#,", "#|")) and entry is None:
                entry = _Entry(begin=match.start())
            if line.startswith("#,") and entry is not None:
                entry.flags = match.span()
            continue
        statement = _STATEMENT.fullmatch(line)
        if statement is None or not (statement.group(1) or keyword):
            raise _bad_request(f"line {number} is none of a PO file")
        if statement.group(1) in ("msgid", "msgctxt") and has_ended and entry is not None:
            yield entry
            entry = None
        entry = _Entry(begin=match.start()) if entry is None else entry
        keyword = statement.group(1) or keyword
        if statement.group(1) and keyword in entry.texts:
            raise _bad_request(f"line {number}: a second {keyword} of the same entry")
        begin, _ = entry.places.get(keyword, match.span())
        entry.places[keyword] = begin, match.end()
        entry.texts[keyword] = entry.texts.get(keyword, "") + _unescape(statement.group(2))
    if entry is not None and keyword.startswith("msgstr"):
        yield entry


def _make_slots(text: str, entry: _Entry, end_of_line: str) -> list[Slot]:
    """Make the slots of an entry: its flag, and its translation or its plural forms."""
    names = [name for name in entry.texts if name.startswith("msgstr")]
    plural = entry.texts.get("msgid_plural")
    if plural is None:
        groups = [(entry.texts["msgid"], names[:1])]
    elif len(names) == 1:  # The language has one form for every number.
        groups = [(plural, names)]
    else:
        groups = [(entry.texts["msgid"], names[:1]), (plural, names[1:])]
    slots = []
    for source, some in groups:
        begin, end = entry.places[some[0]][0], entry.places[some[-1]][1]
        message = parse_message(source)
        if not message.segments:
            continue
        last = "" if text[begin:end].endswith("\n") else end_of_line
        slots.append(
            Slot(
                begin=begin,
                end=end,
                message=message,
                encode=_write_statements(some, end_of_line, last),
            )
        )
    if not slots:
        return []
    if entry.flags is None:
        return [_put((entry.begin, entry.begin), f"#, fuzzy{end_of_line}"), *slots]
    begin, end = entry.flags
    flags = text[begin:end]
    is_fuzzy = "fuzzy" in re.split(r"[\s,]+", flags)
    return [_put((begin, end), flags if is_fuzzy else f"#, fuzzy,{flags[2:]}"), *slots]


def _write_statements(names: Sequence[str], end_of_line: str, last: str) -> Callable[[str], str]:
    """Write the same translation for some forms."""

    def write(shown: str) -> str:
        lines = [_escape(line) for line in re.findall(r"[^\n]*\n|[^\n]+", shown)]
        lines = lines if len(lines) == 1 else ["", *lines]
        quoted = end_of_line.join(f'"{line}"' for line in lines)
        written = "".join(f"{name} {quoted}{end_of_line}" for name in names)
        return written.removesuffix(last)

    return write


def _put(place: tuple[int, int], shown: str) -> Slot:
    return Slot(begin=place[0], end=place[1], message=None, encode=lambda _: shown)


def _unescape(raw: str) -> str:
    def read(match: re.Match[str]) -> str:
        octal, hexadecimal, letter = match.groups()
        if letter is not None:
            return _ESCAPED.get(letter, letter)
        return chr(int(octal, 8) if octal else int(hexadecimal, 16))

    return _ESCAPE.sub(read, raw)


def _escape(text: str) -> str:
    names = {character: f"\\{letter}" for letter, character in _ESCAPED.items()}
    return "".join(names.get(each, each) for each in re.sub(r'(["\\])', r"\\\1", text))


def _bad_request(reason: str) -> ServiceError:
    return ServiceError("bad_request", f"Invalid request: {reason}")
