"""Lossless tokeniser of Markdown: prose and its inline marks, and all else as it is.

A CommonMark parser finds the blocks and marks; of it only positions are taken.
"""

import html
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it import token as parsed
from markdown_it.rules_inline import (
    StateInline,
    autolink,
    backtick,
    entity,
    escape,
    html_inline,
    image,
    link,
    newline,
)

from dragoman.serving.markup.markup_tokens import Token, split_html

BREAK, IMAGE, LINK = "*break", "*image", "*a"
"""Names of what is no element of HTML: a line break that is but a space, an image, a link."""

_FRONT_MATTER = re.compile(
    r"(---|\+\+\+)[ \t]*(?:\r\n?|\n)(?:.*?(?:\r\n?|\n))??(?:\1|\.\.\.)[ \t]*(?:\r\n?|\n|\Z)",
    re.DOTALL,
)
_LINE_END = re.compile(r"\r\n?|\n")
# What other dialects know: notes, boxes to tick, notices, attributes, templates, addresses.
_KEPT = re.compile(
    r"\[\^[^\]\s]{1,99}\]:?|\A\[(?:[ xX]|![A-Z]+)\](?=\s|\Z)|\{[#.:][^{}]*\}"
    r"|\{\{.{0,200}?\}\}|\{%.{0,200}?%\}|https?://[^\s<>]*[^\s<>.,;:!?)]|(?<!\w):[a-z][a-z0-9_+-]*:(?!\w)"
)
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_WRITTEN = re.compile(
    rf"\\({_PUNCTUATION})|(&(?:#[0-9]{{1,7}}|#[xX][0-9a-fA-F]{{1,6}}|[a-zA-Z]\w{{1,31}});)",
    re.ASCII,
)
_SPECIAL = re.compile(
    rf"\\(?={_PUNCTUATION}|\Z)|[`|]|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)"
    r"|<(?=[a-zA-Z/!?])|&(?=#?\w+;)|\](?=[(\[:])"
)
# What would begin another block at the beginning of a line.
_BLOCK_START = re.compile(
    r"(\d{1,9}(?=[.)](?:\s|\Z))|(?=#{1,6}(?:\s|\Z)|[+-](?:\s|\Z)|>|[=-]{2,}\s*\Z|~{3}))"
)


def decode_markdown(raw: str) -> str:
    """Decode escapes and character references of Markdown."""
    return _WRITTEN.sub(lambda each: each.group(1) or html.unescape(each.group(2)), raw)


def encode_markdown(text: str) -> str:
    """Escape text for Markdown, where it would mean something else."""
    escaped = _SPECIAL.sub(lambda each: f"\\{each.group()}", text)
    return _BLOCK_START.sub(r"\1\\", escaped, count=1) if _BLOCK_START.match(escaped) else escaped


def split_markdown(text: str) -> Iterator[Token]:
    """Tokenise Markdown (CommonMark with tables and strike-through).

    Notes
    -----
    Text of paragraphs, headings, list items, cells, links and images is “text”; emphasis and links
    are elements around it, code and addresses stay in it. All between blocks is “declaration”, at
    which a sentence ends: front matter, markers, fences, HTML, definitions.
    """
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    yield Token("declaration", front.group() if front else "")
    begins = [0, *(each.end() for each in _LINE_END.finditer(body)), len(body)]
    place = 0
    before = ""
    for block in _PARSER.parse(body):
        is_cell = before in ("th_open", "td_open")
        before = block.type
        if block.type != "inline" or not block.map or not block.content:
            continue
        first = block.map[0]
        earliest = max(place, begins[first]) if is_cell else None
        places = _find_places(block.content, body, begins[first:], earliest)
        if places is None or places[0] < place:
            continue
        yield Token("declaration", body[place : places[0]])
        yield from _InlineReader(block.content, body, places).read(block.children or [])
        place = places[-1]
    yield Token("declaration", body[place:])


def _find_places(
    content: str, body: str, begins: Sequence[int], cell_from: int | None
) -> list[int] | None:
    """Find where each character of a block is in the text, and where the block ends.

    Parameters
    ----------
    content : str
        The block without the markers of quotations and lists before its lines.
    body : str
        The text.
    begins : Sequence[int]
        Where the lines begin from the first of the block on.
    cell_from : int | None
        Of a cell of a table, where it begins at the earliest; “|” in it is escaped.
    """
    places: list[int] = []
    for (begin, end), row in zip(itertools.pairwise(begins), content.split("\n"), strict=False):
        inner = row.lstrip(" \t")
        if cell_from is None:
            place = body.rfind(inner, begin, end)
        else:
            place = body.find(inner.replace("|", "\\|"), cell_from, end)
        if place < 0:
            return None
        places += [place] * (len(row) - len(inner))
        for character in inner:
            places.append(place)
            place += 2 if cell_from is not None and character == "|" else 1
        places.append(place)
    return places if len(places) == len(content) + 1 else None


class _Piece(NamedTuple):
    """A piece of a block, from where the one before ends."""

    kind: str
    end: int
    name: str = ""


class _InlineReader:
    """Reads the marks in a block into tokens that together are its text."""

    def __init__(self, content: str, body: str, places: Sequence[int]) -> None:
        self._content = content
        self._body = body
        self._places = places

    def read(self, children: Sequence[parsed.Token]) -> list[Token]:
        """Read the marks of the block."""
        pieces = list(self._cut(children, 0))
        if pieces and pieces[-1].end < len(self._content):
            pieces.append(_Piece("text", len(self._content)))
        begins = [0, *(each.end for each in pieces)]
        if begins != sorted(begins) or begins[-1] != len(self._content):  # the parser’s own ways
            pieces = [_Piece("text", len(self._content))]
        tokens: list[Token] = []
        labels: list[int] = []
        for begin, piece in zip(begins, pieces, strict=False):
            raw = self._body[self._places[begin] : self._places[piece.end]]
            if piece.kind == "text":
                tokens += _split_kept(raw)
            elif piece.kind == "html":
                tokens += split_html(raw)
            elif piece.kind == "start" and piece.name in (IMAGE, LINK):
                labels.append(self._places[piece.end])
                tokens.append(Token("start", raw, piece.name))
            elif piece.kind == "end" and piece.name in (IMAGE, LINK):
                # A label that is the text itself must not change with it.
                label = self._body[labels.pop() : self._places[begin]]
                raw = f"][{label}]" if raw in ("]", "][]") else raw
                tokens.append(Token("end", raw, piece.name))
            else:
                tokens.append(Token(piece.kind, raw, piece.name))  # type: ignore[arg-type]
        return tokens

    def _cut(self, children: Sequence[parsed.Token], base: int) -> Iterator[_Piece]:
        """Cut the block into pieces; `base` is where the parser began to count."""
        end, link_end, is_autolink = base, base, False
        for child in children:
            if is_autolink:  # its text, and its end
                is_autolink = child.type != "link_close"
                continue
            known = base + child.meta.get("end", 0)
            if child.type == "link_open":
                is_autolink, link_end = child.info == "auto", known
                end = link_end if is_autolink else end + 1
                yield _Piece("other", end) if is_autolink else _Piece("start", end, LINK)
            elif child.type == "image":
                yield _Piece("start", end + 2, IMAGE)
                yield from self._cut(child.children or [], end + 2)
                end = known
                yield _Piece("end", end, IMAGE)
            elif child.type == "text":
                end += len(child.content)
                yield _Piece("text", end)
            else:
                end = link_end if child.type == "link_close" else end + len(child.markup)
                end = known if "end" in child.meta else end
                kind, name = _KINDS.get(child.type) or ("start", f"*{child.tag}")
                yield _Piece("end" if child.type.endswith("_close") else kind, end, name)


_KINDS = {
    "text_special": ("text", ""),
    "code_inline": ("other", ""),
    "html_inline": ("html", ""),
    "softbreak": ("empty", BREAK),
    "hardbreak": ("empty", "br"),
}


def _split_kept(raw: str) -> Iterator[Token]:
    """Split text at what other dialects of Markdown give a meaning."""
    place = 0
    for match in _KEPT.finditer(raw):
        if match.start() > place:
            yield Token("text", raw[place : match.start()])
        yield Token("other", match.group())
        place = match.end()
    if place < len(raw):
        yield Token("text", raw[place:])


def _watch(rule: Callable[[StateInline, bool], bool]) -> Callable[[StateInline, bool], bool]:
    """Make a rule of the parser note where what it has read ends."""

    def watched(state: StateInline, silent: bool) -> bool:
        num_tokens = len(state.tokens)
        is_read = rule(state, silent)
        if is_read and not silent:
            new = (each for each in state.tokens[num_tokens:] if each.type != "text")
            token = next(new, None)
            if token is not None:
                token.meta["end"] = state.pos
        return is_read

    return watched


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    for name, rule in {
        "newline": newline,
        "escape": escape,
        "backticks": backtick,
        "link": link,
        "image": image,
        "autolink": autolink,
        "html_inline": html_inline,
        "entity": entity,
    }.items():
        parser.inline.ruler.at(name, _watch(rule))
    return parser


_PARSER = _make_parser()
