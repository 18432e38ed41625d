"""A self-contained HTML page of the results of all experiments in a folder."""

import base64
import html
import json
from collections.abc import Mapping, Sequence
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
        *map(_write_record, records),
        _write_missing(missing),
    ]
    return _PAGE.replace("@BODY@", "\n".join(body))


def _write_contents(records: Sequence[Record], num_missing: int) -> str:
    """Write the table of contents."""
    items = [
        f'<li><a href="#{_text(record.name)}">{_text(record.name)}</a> '
        f"<span>{_text(record.title)}</span></li>"
        for record in records
    ]
    if num_missing:
        items.append(f'<li><a href="#missing">not run yet</a> <span>{num_missing}</span></li>')
    return f"<nav><ul>{''.join(items)}</ul></nav>"


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
        f'<div class="wide"><table aria-label="{_text(table.title)}"><thead><tr>{heads}</tr>'
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


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>The paper, measured</title>
<style>
  :root { color-scheme: light dark; --paper: #fff; --ink: #221d29; --faint: #6a6373;
    --line: #d8d3de; --band: #f6f4f8; --accent: #86207c }
  @media (prefers-color-scheme: dark) { :root { --paper: #16131b; --ink: #ece8f1;
    --faint: #a69eb1; --line: #3b3544; --band: #1f1b26; --accent: #f48fb8 } }
  body { margin: 2.5rem auto 5rem; padding: 0 1.5rem; max-width: 70rem;
    font: 1rem/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink) }
  .words { max-width: 48rem }
  h1 { margin: 0 0 .5rem; font-size: 1.9rem }
  h2 { margin: 0 0 .6rem; font-size: 1.35rem; line-height: 1.25 }
  h3 { margin: 1.8rem 0 0; font-size: 1rem; line-height: 1.3 }
  section { margin-top: 3rem; padding-top: 2rem; border-top: 1px solid var(--line) }
  nav ul { list-style: none; margin: 1.2rem 0 0; padding: 0 }
  nav li { display: grid; grid-template-columns: 8rem 1fr; gap: .2rem 1rem; padding: .15rem 0 }
  nav span { color: var(--faint) }
  a { color: var(--accent) }
  p { margin: 0 0 .8rem } ul { margin: .2rem 0 1rem; padding-left: 1.3rem }
  .claim { padding-left: .9rem; border-left: 3px solid var(--accent) }
  figure { margin: 1.5rem 0; padding: .6rem; background: #fff; border: 1px solid var(--line);
    border-radius: .5rem; width: fit-content; max-width: 100%; box-sizing: border-box }
  img { display: block; max-width: 100%; height: auto }
  .wide { overflow-x: auto; margin: .4rem 0 .5rem }
  table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums }
  th { text-align: start; vertical-align: bottom; font-weight: 600; line-height: 1.25;
    border-bottom: 2px solid var(--line); padding: .3rem .9rem .3rem .4rem; max-width: 11rem }
  td { border-bottom: 1px solid var(--line); padding: .25rem .9rem .25rem .4rem;
    vertical-align: top; max-width: 26rem }
  .number { text-align: end } td.number, td.short { white-space: nowrap }
  tbody tr:nth-child(even) { background: var(--band) }
  .notes { font-size: .88rem; color: var(--faint) }
  details { margin-top: .5rem; font-size: .88rem } details.words { margin-top: 1.5rem }
  summary { cursor: pointer; font-weight: 600 }
  dl { display: grid; grid-template-columns: 6rem 1fr; gap: .15rem 1rem; margin: .6rem 0 }
  dt { color: var(--faint) } dd { margin: 0; overflow-wrap: anywhere }
  code { font: .9em ui-monospace, monospace }
  @media (max-width: 40rem) { nav li, dl { grid-template-columns: 1fr } }
</style>
<body>
@BODY@
</body>
</html>
"""
