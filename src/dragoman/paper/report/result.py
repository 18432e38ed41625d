"""Results of experiments as plain values: tables, plots and findings."""

import csv
import io
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Say = Callable[[str], None]
Cell = str | int | float | None

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(cell: Cell) -> float:
    """Return a cell as a number."""
    assert isinstance(cell, int | float), f"{cell!r} is no number"
    return float(cell)


def show(cell: Cell, form: str = "") -> str:
    """Format a cell."""
    if cell is None or isinstance(cell, str):
        return cell or ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if cell == 0 and form.endswith("e"):
        return "0"
    text = format(cell, form or ("," if isinstance(cell, int) else ".4g"))
    mantissa, sign, exponent = text.partition("e")
    if sign:
        text = f"{mantissa}·10{str(int(exponent)).translate(_RAISED)}"
    return text.replace("-", "−")


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    heading : str
        What its cells are, with the unit.
    form : str
        How numbers are shown to people, as in Python's `format`; empty: whole numbers with
        separators, others with four significant digits.
    """

    heading: str
    form: str = ""

    def show(self, cell: Cell) -> str:
        """Format a cell of the column."""
        return show(cell, self.form)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of results.

    Parameters
    ----------
    name : str
        Its short name, part of a file's.
    title : str
        What it shows.
    columns : tuple[Column, ...]
        What its columns are.
    rows : tuple[tuple[Cell, ...], ...]
        As many cells in each as there are columns.
    notes : tuple[str, ...]
        What a reader must know: where numbers come from, what the notes got wrong.
    """

    name: str
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"{self.name}: {len(row)} cells, {len(self.columns)} columns")

    def as_csv(self) -> str:
        """Write the table as comma-separated values."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.heading for column in self.columns)
        writer.writerows(self.rows)
        return text.getvalue()

    def column(self, heading: str) -> list[Cell]:
        """Return the cells of one column."""
        place = [column.heading for column in self.columns].index(heading)
        return [row[place] for row in self.rows]

    def numbers(self, heading: str) -> list[float]:
        """Return the numbers of one column."""
        return [number(cell) for cell in self.column(heading) if cell is not None]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A vertical line across a panel at one value of x.

    Parameters
    ----------
    value : float
        Where.
    text : str
        What is there.
    """

    value: float
    text: str


@dataclass(frozen=True, kw_only=True)
class Series:
    """A series of points.

    Parameters
    ----------
    name : str
        For the legend.
    x : Sequence[float]
        Where the points are.
    y : Sequence[float]
        How high; NaN: no point.
    deviation : Sequence[float] | None
        How far each may be off to either side.
    style : Literal["line", "dashes", "dots"]
        How they are joined.
    point_names : tuple[str, ...]
        What to write beside each point; empty: nothing.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    deviation: Sequence[float] | None = None
    style: Literal["line", "dashes", "dots"] = "line"
    point_names: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A panel of line plots.

    Parameters
    ----------
    title : str
        What it shows; empty: what the plot's title says.
    x_label, y_label : str
        The axes, with units.
    series : tuple[Series, ...]
        The curves.
    x_scale, y_scale : Literal["linear", "log"]
        The axes' scales; “log” ticks the very x that were measured.
    marks : tuple[Mark, ...]
        Values of x to point out.
    y_limits : tuple[float, float] | None
        Where the axis of y begins and ends; None: where the curves do.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    x_scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    marks: tuple[Mark, ...] = ()
    y_limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """A heat map.

    Parameters
    ----------
    title : str
        What it shows; empty: what the plot's title says.
    x_label, y_label, value_label : str
        The axes and the colour, with units.
    values : Sequence[Sequence[float]]
        From the top row down.
    x_names, y_names : tuple[str, ...]
        Names of columns and rows; empty: their numbers, from 0.
    is_signed : bool
        Whether colours spread to both sides of zero.
    largest : float | None
        The value of the last colour; None: the largest there is.
    """

    title: str
    x_label: str
    y_label: str
    value_label: str
    values: Sequence[Sequence[float]]
    x_names: tuple[str, ...] = ()
    y_names: tuple[str, ...] = ()
    is_signed: bool = False
    largest: float | None = None


@dataclass(frozen=True, kw_only=True)
class Bar:
    """One horizontal bar.

    Parameters
    ----------
    name : str
        What it belongs to; bars of one name stand together.
    group : str
        Its colour, for the legend.
    end : float
        Where it ends.
    start : float
        Where it begins.
    deviation : float | None
        How far the end may be off to either side.
    """

    name: str
    group: str
    end: float
    start: float = 0.0
    deviation: float | None = None


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A panel of horizontal bars, from the top down.

    Parameters
    ----------
    title : str
        What it shows; empty: what the plot's title says.
    x_label : str
        What a bar's length is, with the unit.
    bars : tuple[Bar, ...]
        The bars.
    x_scale : Literal["linear", "log"]
        The axis's scale; on “log”, bars begin at a power of ten below all of them.
    marks : tuple[Mark, ...]
        Values to point out.
    """

    title: str
    x_label: str
    bars: tuple[Bar, ...]
    x_scale: Literal["linear", "log"] = "linear"
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A picture of one or more panels.

    Parameters
    ----------
    name : str
        Its short name, part of a file's.
    title : str
        What it shows.
    panels : tuple[Lines | HeatMap | Bars, ...]
        From left to right, two in a row.
    """

    name: str
    title: str
    panels: tuple[Lines | HeatMap | Bars, ...]


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The results of one experiment.

    Parameters
    ----------
    title : str
        Its heading.
    claim : str
        What the paper or the notes say, which the experiment tries.
    findings : tuple[str, ...]
        What came out, in sentences.
    tables : tuple[Table, ...]
        The numbers.
    plots : tuple[Plot, ...]
        The pictures.
    seeds : tuple[int, ...]
        The seeds of what was drawn at random.
    """

    title: str
    claim: str
    findings: tuple[str, ...]
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    seeds: tuple[int, ...] = ()

    def table(self, name: str) -> Table:
        """Find a table."""
        return next(table for table in self.tables if table.name == name)


def spread(values: Sequence[float]) -> tuple[float, float | None]:
    """Compute mean and standard deviation of several seeds' results."""
    mean = statistics.fmean(values)
    return mean, statistics.stdev(values) if len(values) > 1 else None


def fit_exponent(x: Sequence[float], y: Sequence[float]) -> float:
    r"""Fit a power law by least squares in logarithms."""
    return statistics.linear_regression([math.log(each) for each in x],
                                        [math.log(each) for each in y]).slope  # fmt: skip
