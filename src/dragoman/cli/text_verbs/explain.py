"""The verb “explain”; nothing heavy is imported before it runs."""

import argparse
import sys
from pathlib import Path

from dragoman.cli.flags import add_device, add_model, add_verb
from dragoman.errors import OptionError

SUFFIXES = (".html", ".svg", ".png")


def add_explain(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “explain”."""
    text = "say which source words each word of a translation depends on, and how sure that is"
    parser = add_verb(verbs, "explain", text, _explain)
    add_model(parser)
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence to translate")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".html, .svg or .png"
    )
    parser.add_argument("--translation", metavar="WORDS", help="explain this instead")
    parser.add_argument(
        "--masks", type=int, default=300, metavar="N",
        help="sentences with words left out that the model is asked about (default: 300)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="INT", help="of what is left out")
    add_device(parser)


def _explain(options: argparse.Namespace) -> None:
    if options.out.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{options.out}: a picture of “{options.out.suffix}” is unknown; use .html, .svg or "
            ".png"
        )
    from dragoman.decoding.translator import Translator
    from dragoman.files import write_file
    from dragoman.insight.explanation import explain
    from dragoman.insight.explanation_picture import draw_explanation
    from dragoman.serving.page.page_export import write_explanation_page

    translator = Translator.load(options.model, options.device)
    found = explain(
        translator,
        options.sentence,
        translation=options.translation,
        num_masks=options.masks,
        seed=options.seed,
    )
    if options.out.suffix.lower() == ".html":
        write_file(options.out, write_explanation_page(translator, found))
    else:
        draw_explanation(found, options.out)
    sys.stdout.write(f"{found.source}\n{found.translation}\n{options.out}\n")
