"""The verb “paper”: one experiment for each table or claim, and a report of all.

To add an experiment: write a file with a frozen dataclass of options and a function ``run`` that
takes them, and give it a line in `EXPERIMENTS`. Nothing heavy may be imported at the top of that
file, since its options are read to answer ``--help``.
"""

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.cli.flags import Parser, add_flags, add_verb, given_flags
from dragoman.errors import OptionError
from dragoman.options import OFF, Plain, from_plain, to_plain
from dragoman.paper.experiments.claims import model_size, parallelism, sentence_length
from dragoman.paper.experiments.claims.model_size import ScaleOptions
from dragoman.paper.experiments.claims.parallelism import ParallelOptions
from dragoman.paper.experiments.claims.sentence_length import LengthOptions
from dragoman.paper.experiments.notes import (
    attention_dictionary,
    broken_parts,
    fibonacci,
    gradient_flow,
    name_distance,
    order_experiment,
    position_study,
    scoring_functions,
    worked_example,
)
from dragoman.paper.experiments.notes.attention_dictionary import DictionaryOptions
from dragoman.paper.experiments.notes.broken_parts import BrokenOptions
from dragoman.paper.experiments.notes.fibonacci import FibonacciOptions
from dragoman.paper.experiments.notes.gradient_flow import GradientsOptions
from dragoman.paper.experiments.notes.name_distance import RecallOptions
from dragoman.paper.experiments.notes.order_experiment import OrderOptions
from dragoman.paper.experiments.notes.position_study import PositionsOptions
from dragoman.paper.experiments.notes.scoring_functions import ScoresOptions
from dragoman.paper.experiments.notes.worked_example import ExampleOptions
from dragoman.paper.experiments.tables import complexity, cost, parameters, systems, variations
from dragoman.paper.experiments.tables.complexity import ComplexityOptions
from dragoman.paper.experiments.tables.cost import CostOptions
from dragoman.paper.experiments.tables.parameters import ParametersOptions
from dragoman.paper.experiments.tables.systems import SystemsOptions
from dragoman.paper.experiments.tables.variations import VariationsOptions
from dragoman.paper.report.result import Experiment, Say

FOLDER = Path("paper-results")


class Entry(NamedTuple):
    """One experiment: its name, what it does, what it takes, and how it is run."""

    name: str
    text: str
    options: type
    run: Callable[[Any, Say], Experiment]


EXPERIMENTS: tuple[Entry, ...] = (
    Entry("parameters", "exact counts of every row of table 3", ParametersOptions, parameters.run),
    Entry("complexity", "table 1 measured: time, memory, paths", ComplexityOptions, complexity.run),
    Entry("cost", "table 2 recomputed, and our own operations", CostOptions, cost.run),
    Entry("scores", "scaling, additive or dot, heads", ScoresOptions, scoring_functions.run),
    Entry("order", "word order, with and without positions", OrderOptions, order_experiment.run),
    Entry("positions", "heat map, criteria, offset maps", PositionsOptions, position_study.run),
    Entry("dictionary", "hard look-up, soft look-up", DictionaryOptions, attention_dictionary.run),
    Entry(
        "example",
        "one sentence through attention, number by number",
        ExampleOptions,
        worked_example.run,
    ),
    Entry(
        "fibonacci", "the next number, with and without attention", FibonacciOptions, fibonacci.run
    ),
    Entry("systems", "the systems of table 2, small, equal budget", SystemsOptions, systems.run),
    Entry("variations", "rows of table 3, small, trained", VariationsOptions, variations.run),
    Entry("broken", "small models without one part each", BrokenOptions, broken_parts.run),
    Entry("length", "BLEU against sentence length", LengthOptions, sentence_length.run),
    Entry("recall", "a name recalled over growing distance", RecallOptions, name_distance.run),
    Entry("gradients", "gradient norm against distance", GradientsOptions, gradient_flow.run),
    Entry("parallel", "training speed as sentences grow", ParallelOptions, parallelism.run),
    Entry("scale", "loss over the size of model and corpus", ScaleOptions, model_size.run),
)


def add_paper(verbs: argparse._SubParsersAction) -> None:
    """Give the command the verb “paper” with all experiments."""
    text = "run the tables and claims of the paper as experiments"
    paper = add_verb(verbs, "paper", text, _complain)
    kinds = paper.add_subparsers(title="experiments", metavar="EXPERIMENT", parser_class=Parser)
    for entry in EXPERIMENTS:
        parser = add_verb(kinds, entry.name, entry.text, _run_experiment)
        parser.set_defaults(entry=entry)
        _add_folder(parser)
        add_flags(parser, entry.options)
    text = "collect the results of a folder into one page"
    _add_folder(add_verb(kinds, "report", text, _report))


def _add_folder(parser: Parser) -> None:
    parser.add_argument(
        "--out", type=Path, default=FOLDER, metavar="DIR",
        help=f"folder of the results (default: {FOLDER})",
    )  # fmt: skip


def _complain(options: argparse.Namespace) -> None:
    names = ", ".join(entry.name for entry in EXPERIMENTS)
    raise OptionError(f"{options.parser.prog}: which experiment? there are {names}, and report")


def _run_experiment(options: argparse.Namespace) -> None:
    """Run one experiment, print it and write its files."""
    import time
    from datetime import UTC, datetime

    from dragoman.paper.report.result_files import (
        Circumstances,
        describe_machine,
        list_versions,
        write_experiment,
    )
    from dragoman.paper.report.terminal import print_experiment

    entry: Entry = options.entry
    given = given_flags(options, entry.options)
    chosen = from_plain(entry.options, given, place=options.parser.prog)
    began = time.monotonic()
    experiment = entry.run(chosen, _say)
    circumstances = Circumstances(
        command=_command(entry.name, given),
        options=to_plain(chosen),
        seeds=experiment.seeds,
        machine=describe_machine(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=list_versions(),
        seconds=round(time.monotonic() - began, 3),
    )
    written = write_experiment(options.out, entry.name, experiment, circumstances)
    print_experiment(experiment)
    for path in written:
        _say(str(path))


def _report(options: argparse.Namespace) -> None:
    """Write the page of all results in a folder."""
    from dragoman.files import write_file
    from dragoman.paper.report.report import PAGE_NAME, read_records, write_report

    names = [entry.name for entry in EXPERIMENTS]
    records = read_records(options.out, names)
    out = [] if options.out == FOLDER else ["--out", str(options.out)]
    run = {record.name for record in records}
    missing = {
        name: shlex.join(["dragoman", "paper", name, *out]) for name in names if name not in run
    }
    path = options.out / PAGE_NAME
    write_file(path, write_report(records, missing))
    for name, command in missing.items():
        _say(f"{name} is missing: {command}")
    sys.stdout.write(f"{path}\n")


def _command(name: str, given: Plain) -> str:
    """Write the command that runs an experiment so again."""
    return shlex.join(["dragoman", "paper", name, *_words(given)])


def _words(given: Plain) -> Iterator[str]:
    """Write options as flags."""
    for key, value in given.items():
        flag = key.replace("_", "-")
        if isinstance(value, dict):
            yield from _words(value)
        elif isinstance(value, bool):
            yield f"--{flag}" if value else f"--no-{flag}"
        else:
            several = value if isinstance(value, list) else [value]
            yield from (f"--{flag}", *(OFF if each is None else str(each) for each in several))


def _say(text: str) -> None:
    """Tell a person something that is not the result."""
    sys.stderr.write(f"{text}\n")
