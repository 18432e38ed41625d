"""Tables as text (CSV, TSV): cells of the columns that hold text are translated."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dragoman.serving.documents.slots import Slot, fill_slots
from dragoman.serving.documents.text_documents import Document
from dragoman.serving.markup.placeholders import parse_message
from dragoman.serving.service_types import ServiceError

DELIMITERS = ",;\t|"

_LETTER = re.compile(r"[^\W\d_]")
# One word with what no word of a language has: an id, a date, a path, an address.
_CODE = re.compile(r"\S*[\d_@/\\#=]\S*|[A-Z]{2,}|(?i:true|false|yes|no|null|none|nan|n/a)")
_NAME = re.compile(r"[^\W\d][\w .()-]{0,40}")
_SAMPLE = 20_000


@dataclass(frozen=True, kw_only=True)
class _Cell:
    begin: int
    end: int
    value: str
    is_quoted: bool


def read_table(
    text: str, encode: Callable[[str], bytes], extension: str, columns: Sequence[str] = ()
) -> Document:
    """Parse a table.

    Parameters
    ----------
    text : str
        The file.
    encode : Callable[[str], bytes]
        Writes it.
    extension : str
        Of its name: the cells of a .tsv file are separated by tabs, of a .csv file by whatever of
        `DELIMITERS` is most regular.
    columns : Sequence[str]
        The columns that are translated, by their names or numbers, counted from 1; nothing: those
        in which most cells are text.

    Notes
    -----
    The first row stays as it is if its cells are names of columns: short, all different, and none
    of them empty or a number, above at least one other row.
    """
    delimiter = "\t" if extension == ".tsv" else _find_delimiter(text)
    rows = [row for row in _read_rows(text, delimiter) if any(cell.value for cell in row)]
    names = _read_names(rows)
    body = rows[1:] if names else rows
    chosen = _choose(columns, names, body) if columns else _find_text_columns(body)
    slots = [
        Slot(
            begin=cell.begin,
            end=cell.end,
            message=parse_message(cell.value),
            encode=_write_cell(text[cell.begin : cell.end], cell, delimiter),
        )
        for row in body
        for number, cell in enumerate(row)
        if number in chosen and _LETTER.search(cell.value)
    ]
    return fill_slots(text, slots, encode)


def _find_delimiter(text: str) -> str:
    """Find what separates cells: what stands equally often in the most rows."""
    sample = text[:_SAMPLE]
    best = ","
    most = (0, 0)
    for each in DELIMITERS:
        widths = Counter(len(row) for row in _read_rows(sample, each))
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(1, 0))
        if width > 1 and (count, width) > most:
            best, most = each, (count, width)
    return best


def _read_rows(text: str, delimiter: str) -> list[list[_Cell]]:
    """Read all cells with their places."""
    cell = re.compile(rf'"((?:[^"]|"")*+)"(?=[{delimiter}\r\n]|\Z)|([^{delimiter}\r\n]*+)')
    rows: list[list[_Cell]] = [[]]
    place = 0
    while True:
        match = cell.match(text, place)
        assert match is not None
        is_quoted = match.group(1) is not None
        value = match.group(1).replace('""', '"') if is_quoted else match.group(2)
        rows[-1].append(
            _Cell(begin=match.start(), end=match.end(), value=value, is_quoted=is_quoted)
        )
        place = match.end()
        if place >= len(text):
            return rows
        if text[place] != delimiter:
            rows.append([])
            place += text.startswith("\r\n", place)
        place += 1


def _read_names(rows: Sequence[Sequence[_Cell]]) -> list[str]:
    """Read the names of the columns; nothing: the first row has none."""
    if len(rows) < 2:
        return []
    names = [cell.value.strip() for cell in rows[0]]
    are_names = all(_NAME.fullmatch(each) for each in names) and len(set(names)) == len(names)
    return names if are_names and max(len(each.split()) for each in names) <= 3 else []


def _choose(
    columns: Sequence[str], names: Sequence[str], rows: Sequence[Sequence[_Cell]]
) -> set[int]:
    """Find the columns that a person has named."""
    width = max((len(row) for row in rows), default=0)
    chosen = set()
    for column in columns:
        if column in names:
            chosen.add(names.index(column))
        elif column.isdecimal() and 1 <= int(column[:9]) <= width:
            chosen.add(int(column) - 1)
        else:
            known = f"; there are {', '.join(names)[:200]}" if names else ""
            raise ServiceError(
                "bad_request",
                f"Invalid request: the table has no column “{column[:80]}”{known}; give its name, "
                f"or its number from 1 to {width}",
            )
    return chosen


def _find_text_columns(rows: Sequence[Sequence[_Cell]]) -> set[int]:
    """Find the columns in which most cells are text."""
    counts: Counter[int] = Counter()
    for row in rows:
        for number, cell in enumerate(row):
            value = cell.value.strip()
            if value:
                is_text = _LETTER.search(value) and not _CODE.fullmatch(value)
                counts[number] += 1 if is_text else -1
    return {number for number, count in counts.items() if count > 0}


def _write_cell(raw: str, cell: _Cell, delimiter: str) -> Callable[[str], str]:
    """Choose how to write a cell: in quotation marks if it was, or if need be."""

    def write(shown: str) -> str:
        if shown == cell.value:
            return raw
        needs_quotes = any(each in shown for each in f'{delimiter}\r\n"')
        if cell.is_quoted or needs_quotes:
            return '"' + shown.replace('"', '""') + '"'
        return shown

    return write
