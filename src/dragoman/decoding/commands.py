"""The verbs that use a trained model; nothing heavy is imported before one runs."""

import argparse
from pathlib import Path

from dragoman.decoding.options import SearchOptions
from dragoman.flags import add_device, add_flags, add_verb, given_flags


def add_decoding(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “translate”.

    Parameters
    ----------
    verbs : argparse._SubParsersAction
        Where to add it.
    """
    parser = add_verb(verbs, "translate", "translate text, line by line", _translate)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE", help="else standard input")
    parser.add_argument(
        "--n-best", type=int, metavar="N",
        help="print N translations a line as “line ||| translation ||| score”",
    )  # fmt: skip
    parser.add_argument("--prefix", default="", metavar="WORDS", help="how translations must begin")
    add_device(parser)
    add_flags(parser, SearchOptions)


def _translate(options: argparse.Namespace) -> None:
    from dragoman.data.corpus import read_lines
    from dragoman.data.lines import blocks_of, lines_of_stdin
    from dragoman.decoding.translator import Translator

    translator = Translator.load(options.model, options.device)
    blocks = blocks_of(read_lines(options.file)) if options.file else lines_of_stdin()
    translations = translator.translate_lines(
        blocks,
        num_best=1 if options.n_best is None else options.n_best,
        prefix=options.prefix,
        options=translator.options_with(given_flags(options, SearchOptions)),
    )
    for number, best in enumerate(translations):
        if options.n_best is None:
            print(best.text, flush=True)
            continue
        for each in (best, *best.alternatives):
            print(f"{number} ||| {each.text} ||| {each.score:.4f}", flush=True)
