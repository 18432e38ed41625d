"""The verb “translate”; nothing heavy is imported before it runs."""

import argparse
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

from dragoman.cli.flags import add_device, add_flags, add_model, add_verb, given_flags
from dragoman.cli.text_verbs.constraint_flags import add_constraints, read_constraints
from dragoman.cli.text_verbs.document import add_document, translate_file
from dragoman.decoding.options import Precision, SearchOptions


def add_translate(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “translate”."""
    parser = add_verb(verbs, "translate", "translate text, line by line", _translate)
    add_model(parser)
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="else standard input")
    parser.add_argument(
        "--n-best", type=int, metavar="N",
        help="print N translations a line as “line ||| translation ||| score”",
    )  # fmt: skip
    parser.add_argument("--prefix", default="", metavar="WORDS", help="how translations must begin")
    parser.add_argument(
        "--output", type=Path, metavar="FILE",
        help="write there; the same command goes on where an interrupted one stopped",
    )  # fmt: skip
    add_document(parser)
    parser.add_argument(
        "--alignments", action="store_true",
        help="print which word translates which as “translation ||| 0-0 1-2”, counted from 0",
    )  # fmt: skip
    parser.add_argument(
        "--confidence", action="store_true",
        help="print last how probable it is that the translation is good, as “translation ||| "
        "0.87”; the model must be calibrated (evaluate --calibrate)",
    )  # fmt: skip
    add_constraints(parser)
    add_device(parser)
    parser.add_argument(
        "--precision", default="auto", choices=get_args(Precision),
        help="of the products; auto: eight bits on a CPU where that loses nothing",
    )  # fmt: skip
    parser.add_argument(
        "--short-list", action="store_true",
        help="search among the words that “dragoman shortlist” found likely: faster on a CPU",
    )  # fmt: skip
    parser.add_argument(
        "--explain-engine", action="store_true",
        help="say which engine translates, in which precision, and why",
    )  # fmt: skip
    add_flags(parser, SearchOptions)


def _translate(options: argparse.Namespace) -> None:
    if options.document is not None or options.columns is not None:
        translate_file(options)
        return
    from dragoman.data.lines import open_lines
    from dragoman.decoding.stream.line_stream import WINDOW_LINES, open_output, run_stream
    from dragoman.decoding.stream.line_translation import LineTranslator
    from dragoman.decoding.stream.progress import ProgressDisplay
    from dragoman.decoding.translator import Translator

    reader = open_lines(options.file)
    translator = Translator.load(options.model, options.device, options.others, options.precision)
    if options.explain_engine and translator.choice is not None:
        meanwhile = "; until it is compiled, PyTorch for a few texts" * translator.is_compiling
        sys.stderr.write(f"engine: {translator.choice.explain()}{meanwhile}\n")
    if options.short_list:
        from dragoman.decoding.search.shortlist import read_short_list

        translator.short_list = read_short_list(
            translator.folder, is_possible=translator.takes_short_list
        )
    prepared = read_constraints(options, translator)
    aligner = None
    if options.alignments:
        from dragoman.decoding.output.alignments import Aligner

        aligner = Aligner.of(translator)

    translate = partial(
        translator.translate_all,
        num_best=1 if options.n_best is None else options.n_best,
        prefix=options.prefix,
        options=translator.options_with(given_flags(options, SearchOptions)),
        constraints=replace(prepared.constraints, is_aligned=options.alignments),
    )

    shows_progress = options.output is not None or not sys.stdout.isatty()
    with ProgressDisplay(num_bytes=reader.num_bytes, shows_progress=shows_progress) as display:
        for warning in prepared.warnings:
            display.warn(warning)
        work = LineTranslator(
            translate,
            place=reader.place,
            warn=display.warn,
            is_n_best=options.n_best is not None,
            aligner=aligner,
            name_tokens=translator.folder.vocabularies.target.pieces if options.scores else None,
            is_confident=options.confidence,
        )
        with open_output(options, reader, display) as output:
            run_stream(reader, work, output, display, WINDOW_LINES[translator.device_type])
