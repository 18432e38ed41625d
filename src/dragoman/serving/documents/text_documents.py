"""Text formats: plain text, Markdown, subtitles, HTML."""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.serving.documents.encodings import DecodedText, decode_text
from dragoman.serving.documents.language_marks import mark_page
from dragoman.serving.markup.markdown_tokens import split_markdown
from dragoman.serving.markup.markup import ParsedMarkup, parse_tokens
from dragoman.serving.markup.markup_tokens import Token, split_html
from dragoman.serving.markup.tag_rules import HTML, HTML_PAGE, MARKDOWN
from dragoman.serving.service_types import ServiceError, Span

TEXT_FORMATS = (".txt", ".md", ".html", ".htm", ".xhtml", ".srt", ".vtt")

MOST_MARKUP = 5_000_000
"""Characters of a document with its tags, which have to be read before anything is known of it."""

Translated = tuple[str, Iterable[Span]]

_LINE = re.compile(r"[^\r\n]+|[\r\n]+")
_TIME = re.compile(r"\s*(?:\d+:)?\d\d:\d\d[,.]\d+\s*-->\s*(?:\d+:)?\d\d:\d\d[,.]\d+")
# Codes for place and looks, as in {\\an8} or {y:i}, and the dash before a speaker.
_CODE = r"\{(?:\\|[a-zA-Z]:)[^{}]*\}"
_SPEAKER = re.compile(rf"(?:\s*{_CODE})*\s*[-‐–—]\s*")
# Markers of lists, headings, quotations and dialogue at the start of a line.
_MARKER = re.compile(r"\s*+(?:(?:[-‐–—*+•>]|#{1,6}|\d{1,3}[.)])\s++)*+(?=.)")
_NUMBER = re.compile(r"\s*\d+\s*")
_TAG = re.compile(rf"<[^<>]*>|{_CODE}|(?:(?!{_CODE})[^<])+|<")


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
    encoding : str
        How the file is encoded, and is written again.
    into : Callable[[str, str], Document] | None
        Gives the same document with its marks of the source language changed to the target
        language; None: it has none.
    media_type : str
        Of the file that is written.
    """

    texts: list[str]
    write: Callable[[Sequence[Translated]], bytes]
    encoding: str = "utf-8"
    into: "Callable[[str, str], Document] | None" = None
    media_type: str = "application/octet-stream"

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers of answers that say what is unusual about the file."""
        return {} if self.encoding == "utf-8" else {"X-Document-Encoding": self.encoding}


def read_text(content: bytes, extension: str) -> Document:
    """Parse a text file by its extension."""
    is_markup = extension in (".html", ".htm", ".xhtml")
    decoded = decode_text(content, is_markup=is_markup)
    check_length(len(decoded.text), MOST_MARKUP)
    if is_markup:
        marked = parse_tokens(list(split_html(decoded.text)), HTML_PAGE)
        document = _read_page(marked, decoded)
    elif extension == ".md":
        document = _write_marked(
            parse_tokens(list(split_markdown(decoded.text)), MARKDOWN), decoded.encode
        )
    elif extension in (".srt", ".vtt"):
        parse = _parse_web_cue if extension == ".vtt" else _parse_cue
        document = _read_subtitles(decoded.text, decoded.encode, parse)
    else:
        document = _read_lines(decoded.text, decoded.encode)
    return replace(document, encoding=decoded.encoding)


def check_length(length: int, limit: int) -> None:
    """Raise if a document exceeds the length limit."""
    if length > limit:
        raise ServiceError(
            "too_long",
            f"the document has {length:,} characters, but {limit:,} are the most",
            details={"limit": limit, "length": length},
        )


def _read_page(marked: ParsedMarkup, decoded: DecodedText) -> Document:
    """Make a document of a web page, whose language is marked."""

    def into(source: str, target: str) -> Document:
        def encode(page: str) -> bytes:
            return decoded.encode(mark_page(page, source, target))

        return replace(_write_marked(marked, encode), encoding=decoded.encoding)

    return replace(_write_marked(marked, decoded.encode), into=into)


def _write_marked(marked: ParsedMarkup, encode: Callable[[str], bytes]) -> Document:
    """Make a document of parsed markup."""
    return Document(
        texts=marked.segments,
        write=lambda translations: encode(marked.rebuild(translations)),
    )


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


def _read_subtitles(
    text: str, encode: Callable[[str], bytes], parse: Callable[[str], ParsedMarkup]
) -> Document:
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
        cues += _read_cue(lines, begin, place, parse)

    def write(translations: Sequence[Translated]) -> bytes:
        rest = iter(translations)
        for cue in cues:
            shown = cue.marked.rebuild(list(itertools.islice(rest, len(cue.marked.segments))))
            if parse is _parse_cue:  # SubRip has no HTML entities: “&” is “&”.
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


def _parse_cue(text: str) -> ParsedMarkup:
    """Parse the text of a cue of SubRip."""
    return parse_tokens(list(_split_cue(text)), HTML)


def _parse_web_cue(text: str) -> ParsedMarkup:
    """Parse the text of a cue of WebVTT, whose tags may have classes or be times."""
    tokens: list[Token] = []
    for part in re.split(r"(<\d[\d:.]*+>)", text):
        if re.match(r"<\d[^<>]*+>", part):
            tokens.append(Token("other", part))
        else:
            tokens += (each._replace(name=each.name.partition(".")[0]) for each in split_html(part))
    return parse_tokens(tokens, HTML)


def _read_cue(
    lines: Sequence[str], begin: int, end: int, parse: Callable[[str], ParsedMarkup]
) -> list[_Cue]:
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
            cues.append(_Cue(first, lengths, parse(" ".join(stripped)), dash))
    return cues


def _split_cue(text: str) -> Iterator[Token]:
    """Tokenise a cue: tags as in HTML, and codes."""
    for token in split_html(text):
        parts = re.split(f"({_CODE})", token.raw) if token.kind == "text" else [token.raw]
        for index, part in enumerate(parts):
            if part:
                yield token._replace(kind="other" if index % 2 else token.kind, raw=part)


def _break_lines(text: str, lengths: Sequence[int]) -> list[str]:
    """Break a text at spaces into lines in proportion to the given lengths."""
    words: list[str] = [""]
    for match in _TAG.finditer(text):
        if _is_mark(match.group()):
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
    return sum(len(part) for part in parts if not _is_mark(part)) + 1


def _is_mark(part: str) -> bool:
    """Whether a part of a cue is a tag or a code."""
    return part.startswith("<") or re.match(_CODE, part) is not None
