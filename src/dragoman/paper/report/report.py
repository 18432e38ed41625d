"""A self-contained HTML page of the results of all experiments in a folder."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from dragoman.errors import DataError
from dragoman.paper.report.result import Cell, Column, Table
from dragoman.paper.report.result_files import Record, read_record

PAGE_NAME = "report.html"
_SHORT = 40
_MOST_ROWS = 30
_FINENESS = 1.5


def read_records(folder: Path, names: Sequence[str]) -> list[Record]:
    """Read the results of a folder."""
    paths = [folder / f"{name}.json" for name in names]
    found = [read_record(path) for path in paths if path.exists()]
    if not found:
        raise DataError(
            f"{folder}: no results there; run an experiment first, such as “dragoman paper "
            f"{names[0]} --out {folder}”"
        )
    return found


def write_report(records: Sequence[Record], missing: Mapping[str, str]) -> str:
    """Write the page."""
    body = [
        '<header class="words"><h1>The paper, measured</h1>',
        "<p>The tables and claims of “Attention Is All You Need”, and of the notes about it, "
        "beside what was found when they were tried. Each section says what was run.</p>",
        _write_contents(records, len(missing)),
        "</header>",
        "<main>",
        *map(_write_record, records),
        _write_missing(missing),
        "</main>",
    ]
    page = (files(__package__) / "report.html").read_text(encoding="utf-8")
    return page.replace("@BODY@", "\n".join(body))


def _write_contents(records: Sequence[Record], num_missing: int) -> str:
    """Write the table of contents."""
    items = [
        f'<li><a href="#{_text(record.name)}">{_text(record.name)}</a> '
        f"<span>{_text(record.title)}</span></li>"
        for record in records
    ]
    if num_missing:
        items.append(f'<li><a href="#missing">not run yet</a> <span>{num_missing}</span></li>')
    return f'<nav aria-label="Contents"><ul>{"".join(items)}</ul></nav>'


def _write_record(record: Record) -> str:
    """Write one experiment's section."""
    findings = "".join(f"<li>{_text(each)}</li>" for each in record.findings)
    pictures = "".join(
        f'<figure><img alt="{_text(picture.title)}" width="{_width(picture.content)}" '
        f'src="data:image/png;base64,{base64.b64encode(picture.content).decode()}"></figure>'
        for picture in record.pictures
    )
    return (
        f'<section id="{_text(record.name)}"><div class="words">'
        f"<h2>{_text(record.title)}</h2>"
        f'<p class="claim"><b>The claim.</b> {_text(record.claim)}</p>'
        f"<p><b>What was found.</b></p><ul>{findings}</ul></div>"
        f"{pictures}{''.join(map(_write_table, record.tables))}{_write_run(record)}</section>"
    )


def _write_table(table: Table) -> str:
    """Write one table with its notes."""
    heads = "".join(
        _write_heading(column, [row[index] for row in table.rows])
        for index, column in enumerate(table.columns)
    )
    rows = "".join(
        "<tr>"
        + "".join(_write_cell(*each) for each in zip(table.columns, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    notes = "".join(f"<li>{_text(note)}</li>" for note in table.notes)
    laid = (
        f'<div class="wide" tabindex="0" role="region" aria-label="{_text(table.title)}">'
        f'<table aria-label="{_text(table.title)}"><thead><tr>{heads}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>"
    )
    if len(table.rows) > _MOST_ROWS:
        laid = f"<details><summary>{len(table.rows)} rows</summary>{laid}</details>"
    told = f'<ul class="notes words">{notes}</ul>' if notes else ""
    return f'<h3 class="words">{_text(table.title)}</h3>{laid}{told}'


def _write_heading(column: Column, cells: Sequence[Cell]) -> str:
    """Write a column's heading, aligned like its cells."""
    kind = "" if any(isinstance(cell, str) for cell in cells) else ' class="number"'
    return f'<th scope="col"{kind}>{_text(column.heading)}</th>'


def _write_cell(column: Column, cell: Cell) -> str:
    """Write a cell: numbers aligned right, short words on one line."""
    kind = "number" if not isinstance(cell, str) else "short" if len(cell) <= _SHORT else "long"
    return f'<td class="{kind}">{_text(column.show(cell))}</td>'


def _write_run(record: Record) -> str:
    """Describe how an experiment was run."""
    run = record.circumstances
    facts = {
        "command": run.command,
        "options": ", ".join(f"{key} {_plain(value)}" for key, value in run.options.items()),
        "seeds": ", ".join(map(str, run.seeds)) or "none: nothing was drawn at random",
        "machine": run.machine,
        "versions": ", ".join(f"{key} {value}" for key, value in run.versions.items()),
        "date": run.date,
        "took": f"{run.seconds:,.1f} s",
    }
    items = "".join(
        f"<dt>{key}</dt><dd>{f'<code>{_text(value)}</code>' if key == 'command' else _text(value)}"
        "</dd>"
        for key, value in facts.items()
        if value
    )
    return f'<details class="words" open><summary>What was run</summary><dl>{items}</dl></details>'


def _write_missing(missing: Mapping[str, str]) -> str:
    """List the experiments that were not run."""
    if not missing:
        return '<section class="words"><p>Every experiment is on this page.</p></section>'
    items = "".join(
        f"<dt>{_text(name)}</dt><dd><code>{_text(command)}</code></dd>"
        for name, command in missing.items()
    )
    return (
        '<section class="words" id="missing"><h2>Not run yet</h2><p>These experiments are not in '
        "the folder. The command beside each runs it; then make this page again.</p>"
        f"<dl>{items}</dl></section>"
    )


def _width(picture: bytes) -> int:
    """Read a PNG's width from its header, in CSS pixels."""
    return round(int.from_bytes(picture[16:20], "big") / _FINENESS)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(words: str) -> str:
    return html.escape(words)
