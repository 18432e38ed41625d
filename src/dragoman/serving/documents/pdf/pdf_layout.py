"""Reading order of a page: lines, columns of text, and tables, by the white space between them."""

import bisect
import itertools
import math
import re
import statistics
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dragoman.serving.documents.pdf.pdf_parts import Piece

Gap = tuple[float, float]

_MARKER = re.compile(r"(?:[•‣◦▪●○■–—*·-]|\(?(?:\d{1,3}|[a-zA-Z])[.)])\s*")
"""What stands before an item of a list."""

_COLUMN_GAP = 0.8
"""Of the size of text how wide white space between columns is at least."""
_MARKER_GAP = 5.0
"""Of the size of text how far an item may stand from its marker."""
_LONG_LINE = 18
"""Characters that half of the lines of a column have; what has shorter ones is a table."""
_SAME, _BESIDE = 0.4, 0.75
"""Of its size how much lower a piece is of the same band, and how much if it stands beside it."""
_LEVEL = 0.15
"""Of its size how much higher or lower a cell of a table stands than the first of its row."""
_NEAR = 1.9
"""Of its size how far below the line before it a line still belongs to the same columns."""
_INDENT = 3.0
"""Of its size how far behind the edge of a column a line of it begins."""
_DEEPEST = 6
"""Columns in columns."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of text.

    Parameters
    ----------
    text : str
        What it says.
    left, right, base : float
        Where it begins and ends, and how high it stands.
    size : float
        Of most of it.
    is_bold : bool
        Whether all of it is bold.
    hanging : float | None
        Where the text of an item begins whose marker stands apart.
    """

    text: str
    left: float
    right: float
    base: float
    size: float
    is_bold: bool
    hanging: float | None = None


@dataclass(frozen=True, kw_only=True)
class TextBlock:
    """Lines below each other, which are paragraphs."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, kw_only=True)
class TableBlock:
    """Rows of cells, of which each has lines."""

    rows: tuple[tuple[tuple[Line, ...], ...], ...]


Block = TextBlock | TableBlock
Band = list[Piece]
"""Pieces at the same height, from left to right."""


def find_marker(text: str) -> int:
    """Find where the text of an item begins, behind its marker; 0: it is none."""
    marker = _MARKER.match(text)
    is_item = marker is not None and marker.group()[-1].isspace() and marker.end() < len(text)
    return marker.end() if marker is not None and is_item else 0


def find_blocks(pieces: Sequence[Piece], depth: int = 0) -> list[Block]:
    """Find the blocks of a page, or a column, in the order in which they are read.

    Notes
    -----
    Bands between which the same white space stands, from top to bottom, are columns: of text, which
    are read one after the other, if most of their lines are long, else of a table. Everything else
    is lines. The cost is that of sorting, times the depth of columns.
    """
    bands = make_bands(pieces)
    blocks: list[Block] = []
    lines: list[Line] = []
    place = 0
    while place < len(bands):
        end, gaps = _find_columns(bands, place) if depth < _DEEPEST else (place, [])
        if end - place < 2:
            lines.append(join_pieces(bands[place]))
            place += 1
            continue
        blocks += [TextBlock(lines=tuple(lines))] if lines else []
        lines = []
        blocks += _read_columns(bands[place:end], gaps, depth)
        place = end
    return [*blocks, TextBlock(lines=tuple(lines))] if lines else blocks


def make_bands(pieces: Sequence[Piece]) -> list[Band]:
    """Group pieces at the same height, from top to bottom.

    Notes
    -----
    Lines of columns beside each other may stand half a line higher or lower.
    """
    bands: list[Band] = []
    for piece in sorted(pieces, key=lambda each: -each.base):
        below = bands[-1][0].base - piece.base if bands else math.inf
        is_beside = below < _BESIDE * piece.size and all(
            piece.left >= each.right or piece.right <= each.left for each in bands[-1]
        )
        if below < _SAME * piece.size or is_beside:
            bands[-1].append(piece)
        else:
            bands.append([piece])
    return [_join_markers(sorted(band, key=lambda each: each.left)) for band in bands]


def _join_markers(band: Band) -> Band:
    """Join the marker of an item with what stands beside it."""
    joined: Band = []
    for piece in band:
        last = joined[-1] if joined else None
        if (
            last is not None
            and _MARKER.fullmatch(last.text)
            and piece.left - last.right < _MARKER_GAP * piece.size
        ):
            text = f"{last.text.strip()} {piece.text.lstrip()}"
            joined[-1] = replace(piece, text=text, left=last.left, hanging=piece.left)
        else:
            joined.append(piece)
    return joined


def join_pieces(pieces: Sequence[Piece]) -> Line:
    """Join pieces beside each other to a line, in the direction of most of its letters."""
    ways = [unicodedata.bidirectional(letter) for each in pieces for letter in each.text]
    if sum(way in ("R", "AL") for way in ways) > ways.count("L"):
        pieces = sorted(pieces, key=lambda each: -each.right)
    largest = max(pieces, key=lambda each: len(each.text))
    return Line(
        text=" ".join(" ".join(each.text.split(" ")).strip() for each in pieces),
        left=min(each.left for each in pieces),
        right=max(each.right for each in pieces),
        base=largest.base,
        size=largest.size,
        is_bold=all(each.is_bold for each in pieces),
        hanging=pieces[0].hanging,
    )


def _find_columns(bands: Sequence[Band], begin: int) -> tuple[int, list[Gap]]:
    """Find where columns end that begin at a band, and the white space between them."""
    gaps = _find_gaps(bands[begin])
    if not gaps:
        return begin, []
    end = last = begin + 1  # Behind the last band, and the last that surely belongs to them.
    num_several = 1
    while end < len(bands):
        band = bands[end]
        narrowest = _COLUMN_GAP * max(each.size for each in band)
        left = [each for gap in gaps for each in _cut(gap, band) if each[1] - each[0] > narrowest]
        is_several = len({bisect.bisect(left, (each.left, each.left)) for each in band}) > 1
        if not left or (not is_several and len(left) < len(gaps)):
            break
        is_near = _is_near(bands[end - 1], band)
        if is_several and not (is_near and last == end) and not _fills_columns(band, left):
            break
        is_sure = is_several or (last == end and is_near)
        gaps, end = left, end + 1
        last = end if is_sure else last
        num_several += is_several
    if num_several < 2:  # A wide space in a line.
        return begin, []
    # To the bottom of the page one column may be longer than the others.
    rest = [piece.right for band in bands[last:end] for piece in band]
    is_column = end == len(bands) and rest and max(rest) > gaps[0][0] - 2 * bands[last][0].size
    end = end if is_column else last
    inside = bands[begin:end]
    return end, [
        gap for gap in gaps if any(each.right <= gap[0] for band in inside for each in band)
        and any(each.left >= gap[1] for band in inside for each in band)
    ]  # fmt: skip


def _fills_columns(band: Band, gaps: Sequence[Gap]) -> bool:
    """Whether a band has one piece in a column, and one that begins at its edge, or is indented."""
    is_one = len(band) <= len(gaps) + 1
    return is_one and any(
        0 <= each.left - gap[1] < _INDENT * each.size for gap in gaps for each in band
    )


def _find_gaps(band: Band) -> list[Gap]:
    """Find white space between the pieces of a band that is wide enough for columns."""
    narrowest = _COLUMN_GAP * max(each.size for each in band)
    gaps = []
    right = band[0].right
    for piece in band[1:]:
        if piece.left - right > narrowest:
            gaps.append((right, piece.left))
        right = max(right, piece.right)
    return gaps


def _cut(gap: Gap, band: Band) -> list[Gap]:
    """Cut from white space what a band covers."""
    left, right = gap
    parts = []
    for piece in band:
        if piece.right <= left or piece.left >= right:
            continue
        if piece.left > left:
            parts.append((left, piece.left))
        left = max(left, piece.right)
    return [*parts, (left, right)] if left < right else parts


def _is_near(above: Band, below: Band) -> bool:
    """Whether a band stands as near below another as lines of a text do."""
    distance = min(each.base for each in above) - max(each.base for each in below)
    return distance < _NEAR * max(each.size for each in below)


def _read_columns(bands: Sequence[Band], gaps: Sequence[Gap], depth: int) -> list[Block]:
    """Read columns of text, a table, or one beside the other."""
    middles = sorted((begin + end) / 2 for begin, end in gaps)
    cells = [_sort_into(band, middles) for band in bands]
    columns = [[row[place] for row in cells if row[place]] for place in range(len(middles) + 1)]
    are_long = [
        statistics.median(len(join_pieces(cell).text) for cell in column) >= _LONG_LINE
        for column in columns
    ]
    if len(bands) < 3 or not any(are_long) or (not all(are_long) and _is_aligned(cells)):
        # Lines below the first column alone are no cells of it.
        end = max(place for place, row in enumerate(cells, start=1) if any(row[1:]))
        table = TableBlock(rows=tuple(_read_rows(bands[:end], cells[:end])))
        below = tuple(join_pieces(band) for band in bands[end:])
        return [table, *([TextBlock(lines=below)] if below else [])]
    blocks = []
    for is_long, group in itertools.groupby(
        zip(are_long, columns, strict=True), lambda each: each[0]
    ):
        some = [[piece for cell in column for piece in cell] for _, column in group]
        inside = some if is_long else [[piece for each in some for piece in each]]
        blocks += [block for each in inside for block in find_blocks(each, depth + 1)]
    return blocks


def _is_aligned(cells: Sequence[Sequence[Sequence[Piece]]]) -> bool:
    """Tell whether the cells of each row have their first lines at one height."""
    rows = [[each[0] for each in row if each] for row in cells if row[0]]
    shares = [abs(each.base - row[0].base) < _LEVEL * each.size for row in rows for each in row[1:]]
    return not shares or statistics.mean(shares) > 0.8


def _sort_into(band: Band, middles: Sequence[float]) -> list[list[Piece]]:
    """Sort the pieces of a band into columns."""
    cells: list[list[Piece]] = [[] for _ in range(len(middles) + 1)]
    for piece in band:
        cells[bisect.bisect(middles, (piece.left + piece.right) / 2)].append(piece)
    return cells


def _read_rows(
    bands: Sequence[Band], cells: Sequence[Sequence[Sequence[Piece]]]
) -> list[tuple[tuple[Line, ...], ...]]:
    """Read the rows of a table; a band with fewer cells right below a row goes on with it."""
    rows: list[list[list[Line]]] = []
    most = max(sum(map(bool, row)) for row in cells)
    distances = [
        (one[0].base - other[0].base) / other[0].size for one, other in itertools.pairwise(bands)
    ]
    for index, row in enumerate(cells):
        is_part = index > 0 and sum(map(bool, row)) < most and not row[0]
        if not is_part or distances[index - 1] > _NEAR:
            rows.append([[] for _ in row])
        for cell, found in zip(rows[-1], row, strict=True):
            cell += [join_pieces(found)] if found else []
    return [tuple(tuple(cell) for cell in row) for row in rows]
