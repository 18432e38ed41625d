"""The flags of “dragoman translate” for what is demanded of translations."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.flags import Parser, add_flags, given_flags
from dragoman.decoding.options import SamplingOptions
from dragoman.errors import OptionError
from dragoman.model_home import find_model
from dragoman.options import from_plain

if TYPE_CHECKING:
    from dragoman.decoding.constraints.constraints import PreparedConstraints
    from dragoman.decoding.translator import Translator


def add_constraints(parser: Parser) -> None:
    """Let a user say what translations must be like."""
    parser.add_argument(
        "--with", dest="others", action="append", type=find_model, default=[], metavar="MODEL",
        help="a model with the same subwords that translates together with the first; may be "
        "repeated",
    )  # fmt: skip
    parser.add_argument(
        "--terms", type=Path, metavar="FILE",
        help="a glossary of lines “source term, tab, target term”: where the one occurs, the "
        "other must appear",
    )  # fmt: skip
    parser.add_argument(
        "--forbid", type=Path, metavar="FILE", help="words that must not appear, one a line"
    )
    parser.add_argument(
        "--scores", action="store_true",
        help="print “translation ||| score ||| ▁sub:-0.12 words:-0.34 </s>:-0.05”",
    )  # fmt: skip
    parser.add_argument(
        "--sample", action="store_true", help="draw translations at random, not the best ones"
    )
    add_flags(parser, SamplingOptions)


def read_constraints(
    options: argparse.Namespace, translator: "Translator"
) -> "PreparedConstraints":
    """Make what a user said of translations ready."""
    from dragoman.decoding.constraints.constraints import (
        Constraints,
        PreparedConstraints,
        prepare_constraints,
    )
    from dragoman.decoding.constraints.glossary import read_forbidden, read_glossary

    given = given_flags(options, SamplingOptions)
    if given and not options.sample:
        name = "--" + next(iter(given)).replace("_", "-")
        raise OptionError(f"{name} means something with --sample only; give that, or leave it out")
    sampling = from_plain(SamplingOptions, given, place="options") if options.sample else None
    if options.confidence:
        from dragoman.decoding.confidence import require_calibration

        require_calibration(translator.folder, is_single=not options.others)
    is_scored = options.scores or options.confidence or options.n_best is not None
    if options.terms is None and options.forbid is None:
        return PreparedConstraints(constraints=Constraints(sampling=sampling, is_scored=is_scored))
    return prepare_constraints(
        translator.folder.vocabularies.target,
        glossary=None if options.terms is None else read_glossary(options.terms),
        phrases=() if options.forbid is None else tuple(read_forbidden(options.forbid)),
        sampling=sampling,
        is_scored=is_scored,
    )
