"""The verb “average”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import TEXT_FILES, add_device, add_verb
from dragoman.model_home import find_model


def add_average(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “average”."""
    parser = add_verb(verbs, "average", "average checkpoints or models into one", _average)
    parser.add_argument("models", type=find_model, nargs="+", metavar="MODEL",
                        help="model folders, or checkpoints (RUN/checkpoints/step-…)")  # fmt: skip
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="the new model folder"
    )
    parser.add_argument("--greedy", action="store_true",
                        help="keep only what helps on the validation files")  # fmt: skip
    parser.add_argument("--valid-source", type=Path, metavar="FILE", help=TEXT_FILES)
    parser.add_argument("--valid-target", type=Path, metavar="FILE", help=TEXT_FILES)
    add_device(parser)


def _average(options: argparse.Namespace) -> None:
    from dragoman.training.checkpoints.soup import average_models

    line = average_models(
        options.models,
        options.out,
        greedy=options.greedy,
        valid_source=options.valid_source,
        valid_target=options.valid_target,
        device=options.device,
    )
    print(line)
