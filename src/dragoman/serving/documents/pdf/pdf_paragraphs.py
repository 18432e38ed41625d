"""Paragraphs of a PDF: lines joined, hyphenated words made whole, running heads set apart."""

import itertools
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dragoman.serving.documents.pdf.pdf_layout import (
    Block,
    Line,
    TextBlock,
    find_blocks,
    find_marker,
    join_pieces,
    make_bands,
)
from dragoman.serving.documents.pdf.pdf_parts import Part, Piece

_HEADING = 1.12
"""How many times larger than other text a heading is."""
_LONGEST_HEADING = 200
_FEWEST_FULL = 2
"""Lines that must be as long as each other before a column may be justified."""
_MOST_RUNNING = 3
"""Lines at the top of a page, and at its bottom, that may be running heads."""
_HYPHEN = re.compile(r"([^\W\d_]+)([-\u2010\u00ad]{1,2})\Z")
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_SUSPENDED = frozenset(
    (
        *("and", "or", "und", "oder", "bis", "sowie", "et", "ou", "y", "o", "e", "i", "en", "of"),
        *("och", "eller", "og", "a", "lub"),
    )
)
"""Words before which a hyphen stands for a part that is left out (“Vor- und Nachteile”)."""
_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*\Z")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True)
class _Paragraph:
    """Lines of one paragraph.

    `is_first`: whether it may have begun in the column before; `is_full`: whether its last line is
    as long as the others of a justified column, so that it goes on in the next. `left`: the edge of
    its column.
    """

    lines: tuple[Line, ...]
    left: float
    is_first: bool
    is_full: bool

    @property
    def size(self) -> float:
        """Return the size of its text."""
        return max(self.lines, key=lambda each: len(each.text)).size


def read_parts(pages: Sequence[Sequence[Sequence[Piece]]]) -> list[Part]:
    """Read the parts of a document from the pieces of its pages."""
    heads, feet, bodies = _split_running([page[0] if page else [] for page in pages])
    blocks: list[Block] = []
    for page, body in zip(pages, bodies, strict=True):
        blocks += [block for way in (body, *page[1:]) for block in find_blocks(way)]
    lines = [line for block in blocks for line in _walk_lines(block)]
    words = Counter(word for line in lines for word in _WORD.findall(line.text[:-1]))
    sizes = sorted(size for line in lines for size in [line.size] * max(len(line.text) // 8, 1))
    body_size = sizes[len(sizes) // 2] if sizes else 1.0
    found: list[_Paragraph | Part] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            found += _split_paragraphs(block.lines)
        else:
            rows = tuple(tuple(_join_lines(cell, words) for cell in row) for row in block.rows)
            found.append(Part(kind="table", rows=rows))
    parts = [*_name_headings(_join_continued(found), body_size, words)]
    return [*heads, *parts, *feet]


def _walk_lines(block: Block) -> Iterator[Line]:
    if isinstance(block, TextBlock):
        yield from block.lines
    else:
        yield from (line for row in block.rows for cell in row for line in cell)


def _split_running(
    pages: Sequence[Sequence[Piece]],
) -> tuple[list[Part], list[Part], list[list[Piece]]]:
    """Set running heads and feet apart: lines that stand at the same place of several pages.

    Returns
    -------
    tuple[list[Part], list[Part], list[list[Piece]]]
        The different heads and feet without the numbers of pages, and what else is on each page.
    """
    banded = [make_bands(page) for page in pages]
    keys = [[_find_key(band) for band in bands] for bands in banded]
    counts = Counter(
        key for page in keys for key in {*page[:_MOST_RUNNING], *page[-_MOST_RUNNING:]}
    )
    least = max(2, round(len(pages) / 4))
    heads: dict[Part, None] = {}
    feet: dict[Part, None] = {}
    rest = []
    for bands, page in zip(banded, keys, strict=True):
        first, last = 0, len(bands)
        while first < min(_MOST_RUNNING, last) and counts[page[first]] >= least:
            first += 1
        while last > max(first, len(bands) - _MOST_RUNNING) and counts[page[last - 1]] >= least:
            last -= 1
        heads |= dict.fromkeys(_make_running("header", band) for band in bands[:first])
        feet |= dict.fromkeys(_make_running("footer", band) for band in bands[last:])
        rest.append([piece for band in bands[first:last] for piece in band])
    return list(heads), list(feet), rest


def _find_key(band: Sequence[Piece]) -> tuple[str, int]:
    """Tell what makes a line the same as one of another page: words and height, but no numbers."""
    line = join_pieces(band)
    return _NUMBER.sub("#", line.text), round(line.base / 4)


def _make_running(kind: Literal["header", "footer"], band: Sequence[Piece]) -> Part:
    """Make a part of a running head, whose number is that of the page."""
    line = join_pieces(band).text
    text = " ".join(_NUMBER.sub("", line).split()).strip(" -–—|/")
    return Part(kind=kind, text=text, is_numbered=_NUMBER.search(line) is not None)


@dataclass(frozen=True, kw_only=True)
class _Column:
    """Edges of a column, the distance of its lines in sizes of text, whether it is justified."""

    left: float
    right: float
    pitch: float
    is_justified: bool


def _split_paragraphs(lines: Sequence[Line]) -> list[_Paragraph]:
    """Split the lines of a column into paragraphs."""
    pitches = [
        (one.base - other.base) / other.size
        for one, other in itertools.pairwise(lines)
        if 0 < one.base - other.base < 3 * other.size and _is_alike(one, other)
    ]
    right = max(each.right for each in lines)
    num_full = sum(right - each.right < 0.3 * each.size for each in lines)
    column = _Column(
        left=min(each.left for each in lines),
        right=right,
        pitch=statistics.median_low(pitches) if pitches else 1.2,
        is_justified=num_full > max(len(lines) / 2, _FEWEST_FULL),
    )
    groups: list[list[Line]] = []
    for index, line in enumerate(lines):
        if index == 0 or _begins_paragraph(lines[index - 1], line, groups[-1], column):
            groups.append([])
        groups[-1].append(line)
    is_full = column.is_justified and right - lines[-1].right < 0.3 * lines[-1].size
    return [
        _Paragraph(
            lines=tuple(group),
            left=column.left,
            is_first=index == 0,
            is_full=is_full and index == len(groups) - 1,
        )
        for index, group in enumerate(groups)
    ]


def _is_alike(one: Line, other: Line) -> bool:
    return abs(one.size - other.size) < 0.1 * other.size and one.is_bold == other.is_bold


def _begins_paragraph(before: Line, line: Line, group: Sequence[Line], column: _Column) -> bool:
    """Whether a line of a column begins a paragraph, behind those of the last one."""
    distance = (before.base - line.base) / line.size
    if distance > 1.3 * column.pitch or distance < 0 or find_marker(line.text) > 0:
        return True
    if before.text.endswith(("\u00ad", "-")):
        return False
    return (
        not _is_alike(before, line)
        or _is_indented(before, line, group, column)
        or _ends_early(before, line, column)
    )


def _is_indented(before: Line, line: Line, group: Sequence[Line], column: _Column) -> bool:
    """Whether the edge of a line tells that a paragraph begins."""
    step = line.left - before.left
    if find_marker(group[0].text):  # What follows its marker is indented.
        if len(group) == 1 and _is_before(line.left, before.hanging, line):
            return _has_room(before, line, column)
        return step < -0.7 * line.size and (len(group) > 1 or line.left < column.left + line.size)
    is_centred = abs(before.left + before.right - line.left - line.right) < line.size
    return step > 0.7 * line.size and not is_centred


def _ends_early(before: Line, line: Line, column: _Column) -> bool:
    """Whether a sentence ends on a line that had room for the first word of the next."""
    return _END.search(before.text) is not None and _has_room(before, line, column)


def _has_room(before: Line, line: Line, column: _Column) -> bool:
    word = line.text.split(" ", 1)[0]
    width = (line.right - line.left) * (len(word) + 1) / max(len(line.text), 1)
    return before.right + width < column.right - line.size


def _is_before(left: float, hanging: float | None, line: Line) -> bool:
    """Whether a line begins before the text of the item above it does."""
    return hanging is not None and left < hanging - 0.7 * line.size


def _join_continued(found: Sequence[_Paragraph | Part]) -> list[_Paragraph | Part]:
    """Join paragraphs that go on in the next column, or on the next page."""
    joined: list[_Paragraph | Part] = []
    for each in found:
        last = joined[-1] if joined else None
        if isinstance(last, _Paragraph) and isinstance(each, _Paragraph) and _continues(last, each):
            joined[-1] = replace(last, lines=(*last.lines, *each.lines), is_full=each.is_full)
        else:
            joined.append(each)
    return joined


def _continues(last: _Paragraph, each: _Paragraph) -> bool:
    """Whether a paragraph is the rest of the last one."""
    before, line = last.lines[-1], each.lines[0]
    if not each.is_first or not _is_alike(before, line) or find_marker(line.text) > 0:
        return False
    hanging = last.lines[0].hanging
    # The next column may stand elsewhere: how far it is from its edge counts as well.
    indent = None if hanging is None else hanging - last.left
    if _is_before(line.left, hanging, line) and _is_before(line.left - each.left, indent, line):
        return False
    is_open = not _END.search(before.text)
    is_cut = before.text.endswith("\u00ad") or line.text[:1].islower()
    return last.is_full or (is_open and is_cut)


def _name_headings(
    found: Sequence[_Paragraph | Part], body_size: float, words: Counter[str]
) -> Iterator[Part]:
    """Tell headings from paragraphs: they are short, and larger or bold."""
    large = sorted(
        {round(each.size) for each in found
         if isinstance(each, _Paragraph) and each.size > _HEADING * body_size},
        reverse=True,
    )  # fmt: skip
    for each in found:
        if isinstance(each, Part):
            yield each
            continue
        text = _join_lines(each.lines, words)
        is_large = each.size > _HEADING * body_size
        is_bold = all(line.is_bold for line in each.lines) and not _END.search(text)
        place = find_marker(text)
        marker, text = text[:place].strip(), text[place:]
        is_named = (is_large or is_bold) and len(text) <= _LONGEST_HEADING
        if is_named and (not marker or any(map(str.isalnum, marker))):
            rank = large.index(round(each.size)) if is_large else len(large)
            yield Part(kind="heading", text=text, marker=marker, level=min(rank + 1, 6))
        else:
            yield Part(kind="paragraph", text=text, marker=marker)


def _join_lines(lines: Sequence[Line], words: Counter[str]) -> str:
    """Join lines; a word that is hyphenated between two is made whole."""
    text = ""
    for line in lines:
        shown = line.text.strip()
        hyphen = _HYPHEN.search(text)
        if not text or not shown:
            text += shown
        elif hyphen is None:
            # Scripts without spaces between words have none between lines.
            is_unspaced = _is_ideograph(text[-1]) and _is_ideograph(shown[0])
            text += shown if is_unspaced else f" {shown}"
        else:
            text = _join_word(text, hyphen, shown, words)
    return text.replace("\u00ad", "")


def _join_word(text: str, hyphen: re.Match[str], shown: str, words: Counter[str]) -> str:
    """Join the halves of a hyphenated word, with a hyphen if it has one where it is not cut."""
    following = _WORD.match(shown)
    second = following.group() if following else ""
    first = _WORD.findall(text[: hyphen.end(1)])[-1]
    whole = text[: hyphen.end(1)]
    if second.lower() in _SUSPENDED:
        return f"{whole}- {shown}"
    # Two hyphens: one of the word, and one of the line.
    is_cut = second[:1].islower() and len(hyphen.group(2)) == 1
    is_cut = is_cut and words[f"{first}-{second}"] <= words[first + second]
    return f"{whole}{'' if is_cut else '-'}{shown}"


def _is_ideograph(character: str) -> bool:
    return "\u3000" <= character <= "\u9fff" or "\uff00" <= character <= "\uffef"
