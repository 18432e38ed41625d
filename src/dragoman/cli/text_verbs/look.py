"""The verb “look”; nothing heavy is imported before it runs."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from dragoman.cli.flags import add_device, add_model, add_verb


def add_look(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “look”."""
    text = "draw what the attention heads look at, or which words decide a word"
    parser = add_verb(verbs, "look", text, _look)
    add_model(parser)
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence to translate")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE", help=".png, .svg or .html"
    )
    parser.add_argument("--translation", metavar="WORDS", help="make the model say this")
    parser.add_argument(
        "--kind", nargs="+", default=[], metavar="KIND",
        help="of encoder, decoder, cross, gradient (default: all attention that there is)",
    )  # fmt: skip
    parser.add_argument("--layer", nargs="+", type=int, default=[], metavar="N", help="from 1; all")
    parser.add_argument("--head", nargs="+", type=int, default=[], metavar="N", help="from 1; all")
    parser.add_argument("--average-heads", action="store_true", help="one map a layer")
    add_device(parser)


def _look(options: argparse.Namespace) -> None:
    from dragoman.decoding.translator import Translator
    from dragoman.files import write_file
    from dragoman.insight.attention import look_at
    from dragoman.insight.picture import draw_maps, mean_heads
    from dragoman.serving.page.page_export import write_look_page

    translator = Translator.load(options.model, options.device)
    seen = look_at(
        translator,
        options.sentence,
        translation=options.translation,
        kinds=options.kind,
        layers=options.layer,
        heads=options.head,
    )
    if seen.remark:
        sys.stderr.write(f"{seen.remark}\n")
    if options.average_heads:
        seen = replace(seen, maps=tuple(mean_heads(seen.maps)))
    if options.out.suffix.lower() == ".html":
        write_file(options.out, write_look_page(translator, seen))
    else:
        title = f"{seen.source}  →  {seen.translation}"
        draw_maps(seen.maps, options.out, title=title, subtitle=seen.legend)
    print(f"{seen.source}\n{seen.translation}\n{options.out}")
