"""Text formats: plain text, subtitles, HTML."""

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dragoman.serving.markup.markup import ParsedMarkup, parse_markup
from dragoman.serving.service_types import ServiceError, Span

TEXT_FORMATS = (".txt", ".md", ".html", ".htm", ".xhtml", ".srt")

MOST_MARKUP = 5_000_000
"""Characters of a document with its tags, which have to be read before anything is known of it."""

Translated = tuple[str, Iterable[Span]]

_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_TIME = re.compile(r"\s*\d+:\d\d:\d\d[,.]\d+\s*-->\s*\d+:\d\d:\d\d[,.]\d+")
_SPEAKER = re.compile(r"\s*[-‐–—]\s*")
# Markers of lists, headings, quotations and dialogue at the start of a line.
_MARKER = re.compile(r"\s*+(?:(?:[-‐–—*+•>]|#{1,6}|\d{1,3}[.)])\s++)*+(?=.)")
_NUMBER = re.compile(r"\s*\d+\s*")
_TAG = re.compile(r"<[^<>]*>|[^<]+|<")


@dataclass(frozen=True, kw_only=True)
class Document:
    """A parsed file.

    Parameters
    ----------
    texts : list[str]
        What is to be translated, in order.
    write : Callable[[Sequence[Translated]], bytes]
        Writes the file with a translation of each text, given with the spans of characters that
        translate each other.
    """

    texts: list[str]
    write: Callable[[Sequence[Translated]], bytes]


def read_text(content: bytes, extension: str) -> Document:
    """Parse a text file by its extension."""
    text, encoding, mark = _decode(content)
    check_length(len(text), MOST_MARKUP)
    if extension in (".html", ".htm", ".xhtml"):
        marked: ParsedMarkup = parse_markup(text, "html")
    elif extension == ".srt":
        return _read_subtitles(text, lambda written: mark + written.encode(encoding))
    else:
        return _read_lines(text, lambda written: mark + written.encode(encoding))
    return Document(
        texts=marked.segments,
        write=lambda translations: mark + marked.rebuild(translations).encode(encoding),
    )


def check_length(length: int, limit: int) -> None:
    """Raise if a document exceeds the length limit."""
    if length > limit:
        raise ServiceError(
            "too_long",
            f"the document has {length:,} characters, but {limit:,} are the most",
            details={"limit": limit, "length": length},
        )


def _decode(content: bytes) -> tuple[str, str, bytes]:
    """Decode bytes; return text, encoding and byte order mark."""
    marks = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
    mark = next((each for each in marks if content.startswith(each)), b"")
    encoding = marks.get(mark, "utf-8")
    try:
        text = content[len(mark) :].decode(encoding)
    except UnicodeDecodeError:
        raise ServiceError(
            "bad_request", "Invalid request: the file is not UTF-8; save it as UTF-8"
        ) from None
    if "\0" in text:
        raise ServiceError(
            "bad_request", "Invalid request: the file has a NUL character, so it is no text"
        )
    return text, encoding, mark


def _read_lines(text: str, encode: Callable[[str], bytes]) -> Document:
    """Parse plain text line by line."""
    parts = _LINE.findall(text)
    places = [place for place, part in enumerate(parts) if any(map(str.isalnum, part))]

    def write(translations: Sequence[Translated]) -> bytes:
        written = list(parts)
        for place, (translation, _) in zip(places, translations, strict=True):
            line = parts[place]
            begin = _find_begin(line)
            written[place] = line[:begin] + translation.strip() + line[len(line.rstrip()) :]
        return encode("".join(written))

    texts = [parts[place][_find_begin(parts[place]) :].strip() for place in places]
    return Document(texts=texts, write=write)


def _find_begin(line: str) -> int:
    """Find where the text of a line begins, after indentation and list markers."""
    marker = _MARKER.match(line)
    begin = 0 if marker is None else marker.end()
    # A line of markers and a number only is text.
    return begin if any(map(str.isalnum, line[begin:])) else len(line) - len(line.lstrip())


@dataclass(frozen=True)
class _Cue:
    """Lines of a subtitle cue that form one text: all of them, or those of one speaker."""

    first: int
    lengths: tuple[int, ...]
    marked: ParsedMarkup
    dash: str


def _read_subtitles(text: str, encode: Callable[[str], bytes]) -> Document:
    """Parse subtitles: cues without numbers and time codes."""
    lines = re.split(r"(\r\n|\r|\n)", text)
    breaks, lines = lines[1::2], lines[::2]
    cues: list[_Cue] = []
    place = 0
    while place < len(lines):
        if not _TIME.match(lines[place]):
            place += 1
            continue
        begin = place = place + 1
        while place < len(lines) and lines[place].strip() and not _starts_next(lines, place):
            place += 1
        cues += _read_cue(lines, begin, place)

    def write(translations: Sequence[Translated]) -> bytes:
        rest = iter(translations)
        for cue in cues:
            shown = cue.marked.rebuild(list(itertools.islice(rest, len(cue.marked.segments))))
            # Subtitles have no HTML entities: “&” is “&”.
            for name, character in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
                shown = shown.replace(name, character)
            broken = _break_lines(shown, cue.lengths)
            lines[cue.first : cue.first + len(cue.lengths)] = [cue.dash + broken[0], *broken[1:]]
        pairs = zip(lines, [*breaks, ""], strict=True)
        return encode("".join(line + end for line, end in pairs))

    texts = [each for cue in cues for each in cue.marked.segments]
    return Document(texts=texts, write=write)


def _starts_next(lines: Sequence[str], place: int) -> bool:
    """Whether the next cue begins without an empty line before it."""
    is_number = _NUMBER.fullmatch(lines[place]) is not None
    return is_number and place + 1 < len(lines) and _TIME.match(lines[place + 1]) is not None


def _read_cue(lines: Sequence[str], begin: int, end: int) -> list[_Cue]:
    """Parse a cue into one text, or one for each speaker."""
    starts = [begin, *(place for place in range(begin + 1, end) if _SPEAKER.match(lines[place]))]
    cues = []
    for first, last in zip(starts, [*starts[1:], end], strict=True):
        if first < last:
            stripped = [each.strip() for each in lines[first:last]]
            speaker = _SPEAKER.match(stripped[0])
            dash = speaker.group() if speaker else ""
            stripped[0] = stripped[0][len(dash) :]
            lengths = tuple(_count_visible(each) for each in stripped)
            cues.append(_Cue(first, lengths, parse_markup(" ".join(stripped), "html"), dash))
    return cues


def _break_lines(text: str, lengths: Sequence[int]) -> list[str]:
    """Break a text at spaces into lines in proportion to the given lengths."""
    words: list[str] = [""]
    for match in _TAG.finditer(text):
        if match.group().startswith("<"):
            words[-1] += match.group()
            continue
        first, *others = match.group().split(" ")
        words[-1] += first
        words += others
    sizes = [_count_visible(word) for word in words]
    scale = sum(lengths) / max(sum(sizes), 1)
    ends = list(itertools.accumulate(lengths))
    lines = [""] * len(lengths)
    length = index = 0
    for word, size in zip(words, sizes, strict=True):
        while index < len(ends) - 1 and (length + size / 2) * scale > ends[index]:
            index += 1
        lines[index] = f"{lines[index]} {word}" if lines[index] else word
        length += size
    return lines


def _count_visible(text: str) -> int:
    """Count the visible characters of a line, plus one for the line break."""
    parts = _TAG.findall(text)
    return sum(len(part) for part in parts if not part.startswith("<")) + 1
