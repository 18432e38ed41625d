"""The verb “evaluate”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import (
    TEXT_FILES,
    add_device,
    add_flags,
    add_model,
    add_verb,
    given_flags,
)
from dragoman.decoding.options import SearchOptions
from dragoman.errors import OptionError

METRICS = ("bleu", "chrf", "ter")


def add_evaluate(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “evaluate”."""
    parser = add_verb(verbs, "evaluate", "score a model on a test set", _evaluate)
    add_model(parser)
    parser.add_argument("--source", type=Path, required=True, metavar="FILE", help=TEXT_FILES)
    parser.add_argument("--reference", type=Path, required=True, nargs="+", metavar="FILE",
                        help="one or more reference translations")  # fmt: skip
    parser.add_argument("--output", type=Path, metavar="FILE", help="keep the translations here")
    parser.add_argument("--metrics", nargs="+", default=list(METRICS), metavar="NAME",
                        help="of bleu, chrf, chrf++, ter")  # fmt: skip
    parser.add_argument("--lowercase", action="store_true", help="ignore case")
    parser.add_argument("--tokenize", metavar="NAME", help="sacreBLEU's tokeniser for BLEU")
    parser.add_argument("--json", action="store_true", help="print the scores as JSON")
    parser.add_argument(
        "--calibrate", action="store_true",
        help="fit the confidence in the model's translations on these lines, for “translate "
        "--confidence”, and write it into the model folder",
    )  # fmt: skip
    add_device(parser)
    add_flags(parser, SearchOptions)


def _evaluate(options: argparse.Namespace) -> None:
    from dragoman.evaluation.evaluate import evaluate_model

    inputs = [options.source, *options.reference]
    if options.output and options.output.resolve() in [path.resolve() for path in inputs]:
        raise OptionError(f"--output {options.output} is also an input; name another file")
    found = evaluate_model(
        options.model,
        options.source,
        options.reference,
        metrics=options.metrics,
        lowercase=options.lowercase,
        tokenize=options.tokenize,
        device=options.device,
        search=given_flags(options, SearchOptions),
        calibrate=options.calibrate,
    )
    print(found.as_json() if options.json else found.in_words(), flush=True)
    if options.output:
        from dragoman.files import write_file

        write_file(options.output, "".join(f"{line}\n" for line in found.translations))
