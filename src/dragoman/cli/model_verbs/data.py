"""The verb “data”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import Parser, add_verb
from dragoman.errors import OptionError


def add_data(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “data”."""
    parser = add_verb(verbs, "data", "make data to learn and test with", _no_data)
    sorts = parser.add_subparsers(title="kinds", metavar="KIND", parser_class=Parser)
    text = "sentence pairs of the built-in grammar or tasks, with their word alignment"
    builtin = add_verb(sorts, "builtin", text, _builtin)
    builtin.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new folder")
    builtin.add_argument("--pair", default="fr-en", metavar="PAIR",
                         help="fr-en (default) or en-es; or the task copy or reversal")  # fmt: skip
    builtin.add_argument("--sentences", type=int, default=20_000, metavar="N",
                         help="training pairs (default: 20000)")  # fmt: skip
    builtin.add_argument("--held-out", type=int, default=1000, metavar="N",
                         help="validation pairs, and as many to test (default: 1000)")  # fmt: skip
    builtin.add_argument("--max-words", type=int, metavar="N",
                         help="the longest source of copy and reversal (default: 10)")  # fmt: skip
    builtin.add_argument("--seed", type=int, default=1, metavar="INT", help="which sentences")


def _no_data(options: argparse.Namespace) -> None:
    raise OptionError(f"{options.parser.prog}: which kind? “builtin” is there")


def _builtin(options: argparse.Namespace) -> None:
    from dragoman.data.builtin import write_corpus

    counts = write_corpus(
        options.out,
        languages=options.pair,
        count=options.sentences,
        held_out=options.held_out,
        seed=options.seed,
        max_words=options.max_words,
    )
    for name, count in counts.items():
        print(f"{options.out / name}: {count:,} lines")
