"""Print the results of an experiment."""

import sys
from typing import TYPE_CHECKING

from dragoman.paper.report.result import Experiment, Table

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_LINE = 100
_WIDEST = 10_000


def print_experiment(experiment: Experiment) -> None:
    """Print an experiment's findings and tables to standard output.

    Notes
    -----
    Into a file or a pipe, lines are as wide as the tables need.
    """
    from rich.console import Console

    tables = [_rich_table(table) for table in experiment.tables]
    console = Console(highlight=False, markup=False, emoji=False)
    if not sys.stdout.isatty():
        console.width = _WIDEST
        console.width = max([_LINE, *(console.measure(table).maximum for table in tables)])
    console.print(experiment.title, style="bold")
    console.print(f"The claim: {experiment.claim}")
    for table, laid in zip(experiment.tables, tables, strict=True):
        console.print()
        console.print(table.title, style="bold")
        console.print(laid)
        for note in table.notes:
            console.print(f"  {note}", style="dim")
    console.print()
    for finding in experiment.findings:
        console.print(f"• {finding}")


def _rich_table(table: Table) -> "RichTable":
    """Build a rich table for the terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    laid = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows]
        is_text = any(isinstance(cell, str) for cell in cells)
        laid.add_column(Text(column.heading), justify="left" if is_text else "right")
    for row in table.rows:
        shown = (column.show(cell) for column, cell in zip(table.columns, row, strict=True))
        laid.add_row(*map(Text, shown))
    return laid
