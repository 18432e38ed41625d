"""Write and read the results of an experiment and how it was run."""

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dragoman.errors import DataError
from dragoman.files import write_file
from dragoman.paper.report.result import Cell, Column, Experiment, Table

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """The conditions under which an experiment was run.

    Parameters
    ----------
    command : str
        What to type to run it again.
    options : Mapping[str, Any]
        All its options, given or not.
    seeds : tuple[int, ...]
        Of what was drawn at random.
    machine : str
        In words: cores, processor, accelerator.
    date : str
        When it ended, in UTC.
    versions : Mapping[str, str]
        Of what computed it.
    seconds : float
        How long it took.
    """

    command: str
    options: Mapping[str, Any]
    seeds: tuple[int, ...]
    machine: str
    date: str
    versions: Mapping[str, str]
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A rendered plot.

    Parameters
    ----------
    title : str
        What it shows.
    content : bytes
        A PNG.
    """

    title: str
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Record:
    """An experiment as read from its files.

    Parameters
    ----------
    name : str
        The experiment's.
    title, claim : str
        As in `Experiment`.
    findings : tuple[str, ...]
        Likewise.
    tables : tuple[Table, ...]
        Likewise.
    pictures : tuple[Picture, ...]
        Its plots, drawn.
    circumstances : Circumstances
        How it was run.
    """

    name: str
    title: str
    claim: str
    findings: tuple[str, ...]
    tables: tuple[Table, ...]
    pictures: tuple[Picture, ...]
    circumstances: Circumstances


def describe_machine() -> str:
    """Describe this machine."""
    import torch

    processor = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        processor = names[0].split(":", 1)[1].strip() if names else processor
    words = f"{os.cpu_count()} cores, {processor}"
    return f"{words}, {torch.cuda.get_device_name()}" if torch.cuda.is_available() else words


def list_versions() -> dict[str, str]:
    """List the versions that results may depend on."""
    import numpy as np
    import torch

    from dragoman import __version__

    return {
        "dragoman": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def write_experiment(
    folder: Path, name: str, experiment: Experiment, circumstances: Circumstances
) -> list[Path]:
    """Write an experiment's files.

    Returns
    -------
    list[Path]
        A PNG for each plot, a CSV for each table, and last the JSON, which tells everything.
    """
    from dragoman.paper.report.plots import draw

    written = []
    for plot in experiment.plots:
        written.append(folder / f"{name}-{plot.name}.png")
        write_file(written[-1], draw(plot))
    for table in experiment.tables:
        written.append(folder / f"{name}-{table.name}.csv")
        write_file(written[-1], table.as_csv())
    told = {
        "format": _FORMAT,
        "name": name,
        "title": experiment.title,
        "claim": experiment.claim,
        "findings": experiment.findings,
        "run": asdict(circumstances),
        "tables": [_plain_table(table) for table in experiment.tables],
        "pictures": [
            {"title": plot.title, "file": f"{name}-{plot.name}.png"} for plot in experiment.plots
        ],
    }
    written.append(folder / f"{name}.json")
    write_file(written[-1], json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return written


def read_record(path: Path) -> Record:
    """Read what `write_experiment` wrote."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        return Record(
            name=told["name"],
            title=told["title"],
            claim=told["claim"],
            findings=tuple(told["findings"]),
            tables=tuple(map(_table_from, told["tables"])),
            pictures=tuple(
                Picture(title=each["title"], content=(path.parent / each["file"]).read_bytes())
                for each in told["pictures"]
            ),
            circumstances=Circumstances(**{**told["run"], "seeds": tuple(told["run"]["seeds"])}),
        )
    except FileNotFoundError as error:
        raise DataError(
            f"{error.filename}: not there, though {path.name} names it; run “dragoman paper "
            f"{path.stem}” again"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(
            f"{path}: not what “dragoman paper” writes; remove it, or run “dragoman paper "
            f"{path.stem}” again"
        ) from None


def _plain_table(table: Table) -> dict[str, Any]:
    """Convert a table to JSON values."""
    return {
        "name": table.name,
        "title": table.title,
        "columns": [asdict(column) for column in table.columns],
        "rows": [[_plain_cell(cell) for cell in row] for row in table.rows],
        "notes": table.notes,
    }


def _plain_cell(cell: Cell) -> Cell:
    """Encode infinities and NaN, which JSON lacks."""
    return str(cell) if isinstance(cell, float) and not math.isfinite(cell) else cell


def _table_from(told: Mapping[str, Any]) -> Table:
    """Reverse `_plain_table`."""
    return Table(
        name=told["name"],
        title=told["title"],
        columns=tuple(Column(**column) for column in told["columns"]),
        rows=tuple(tuple(row) for row in told["rows"]),
        notes=tuple(told["notes"]),
    )
