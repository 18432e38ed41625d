"""The verb “quantise”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import add_verb


def add_quantise(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “quantise”."""
    parser = add_verb(
        verbs, "quantise", "write a model in eight bits: a quarter of the size", _quantise
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("out", type=Path, metavar="OUT", help="the new model folder")


def _quantise(options: argparse.Namespace) -> None:
    from dragoman.decoding.quantise import write_int8
    from dragoman.folder import read_folder

    write_int8(read_folder(options.model), options.out)
