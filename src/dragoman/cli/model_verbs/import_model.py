"""The verb “import”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import add_languages, add_verb


def add_import(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “import”."""
    parser = add_verb(verbs, "import", "make a model folder of another tool's model", _import)
    parser.add_argument(
        "path", type=Path, metavar="MODEL",
        help="a folder or file of Hugging Face's MarianMT, OPUS-MT (.zip), Marian, CTranslate2 or "
        "Argos Translate (.argosmodel)",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT", help="the new model folder")
    add_languages(parser, "else what the folder says")
    parser.add_argument(
        "--vocabulary", nargs="+", type=Path, default=[], metavar="FILE",
        help="of Marian (.yml, .spm) or CTranslate2 (.spm), for both sides or for each (default: "
        "beside the model)",
    )  # fmt: skip
    parser.add_argument(
        "--short-list", type=Path, metavar="FILE",
        help="of Marian: lex….s2t.bin or lex….s2t.gz (default: beside the model, if there is one)",
    )  # fmt: skip


def _import(options: argparse.Namespace) -> None:
    from dragoman.exchange.foreign_model import import_model

    import_model(
        options.path,
        options.out,
        vocabularies=options.vocabulary,
        short_list=options.short_list,
        source_language=options.source_language,
        target_language=options.target_language,
    )
    print(options.out)
