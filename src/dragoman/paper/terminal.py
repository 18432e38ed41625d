"""Print what an experiment found."""

import sys

from dragoman.paper.result import Experiment, Table

_WIDTH_WITHOUT_TERMINAL = 200


def print_experiment(experiment: Experiment) -> None:
    """Print an experiment's words and tables to the standard output.

    Parameters
    ----------
    experiment : Experiment
        What it found.

    Notes
    -----
    Into a file or a pipe, lines are as wide as the tables need.
    """
    from rich.console import Console

    width = None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL
    console = Console(width=width, highlight=False, markup=False, soft_wrap=False)
    console.print(experiment.title, style="bold")
    console.print(f"The claim: {experiment.claim}")
    for table in experiment.tables:
        console.print()
        console.print(_rich_table(table))
        for note in table.notes:
            console.print(f"  {note}", style="dim")
    console.print()
    for finding in experiment.findings:
        console.print(f"• {finding}")


def _rich_table(table: Table) -> object:
    """Lay a table out for the terminal."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    laid = RichTable(
        title=Text(table.title), box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False,
        title_style="bold",
    )  # fmt: skip
    for index, column in enumerate(table.columns):
        cells = [row[index] for row in table.rows]
        is_text = any(isinstance(cell, str) for cell in cells)
        laid.add_column(Text(column.heading), justify="left" if is_text else "right")
    for row in table.rows:
        shown = (column.show(cell) for column, cell in zip(table.columns, row, strict=True))
        laid.add_row(*map(Text, shown))
    return laid
