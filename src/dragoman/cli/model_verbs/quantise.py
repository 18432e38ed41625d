"""The verb “quantise”; nothing heavy is imported before it runs."""

import argparse
import sys
from pathlib import Path

from dragoman.cli.flags import add_model, add_verb


def add_quantise(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “quantise”."""
    parser = add_verb(
        verbs, "quantise", "write a model in eight bits: a quarter of the size", _quantise
    )
    add_model(parser)
    parser.add_argument("out", type=Path, metavar="OUT", help="the new model folder")


def _quantise(options: argparse.Namespace) -> None:
    from dragoman.decoding.confidence import CONFIDENCE_FILE
    from dragoman.decoding.quantise import write_int8
    from dragoman.folder import read_folder

    write_int8(read_folder(options.model), options.out)
    was_there, is_there = (
        (each / CONFIDENCE_FILE).exists() for each in (options.model, options.out)
    )
    if was_there and not is_there:
        sys.stderr.write(
            f"{options.out}: is not calibrated, as {options.model} loses something in eight bits; "
            "make its own calibration with “dragoman evaluate --calibrate”\n"
        )
