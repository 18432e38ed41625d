"""The verb “export”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path
from typing import Any

from dragoman.cli.flags import add_languages, add_verb
from dragoman.errors import OptionError

FORMATS = ("huggingface", "ctranslate2", "argos", "marian")
QUANTISATIONS = (
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16",
    "int8_bfloat16",
)  # fmt: skip


def add_export(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “export”."""
    parser = add_verb(verbs, "export", "write a model for another tool", _export)
    parser.add_argument("model", type=Path, metavar="MODEL", help="a model folder")
    parser.add_argument(
        "--to", required=True, choices=FORMATS,
        help="transformers' MarianMT, CTranslate2, a package of Argos Translate, or Marian",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder, or NAME.argosmodel")
    parser.add_argument(
        "--quantisation", choices=QUANTISATIONS,
        help="how CTranslate2 and Argos store weights (default: float32)",
    )  # fmt: skip
    add_languages(parser, "for Argos; else what the model says")
    parser.add_argument(
        "--package-version", metavar="N.N", help="of an Argos package (default: 1.0)"
    )


def _export(options: argparse.Namespace) -> None:
    unheeded = ["source_language", "target_language", "package_version"]
    if options.to in ("huggingface", "marian"):
        unheeded.append("quantisation")
    for name in unheeded if options.to != "argos" else ():
        if getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise OptionError(f"--{flag} means nothing with --to {options.to}; leave it out")
    quantisation: Any = options.quantisation or "float32"
    if options.to == "huggingface":
        from dragoman.exchange.huggingface import export_huggingface

        export_huggingface(options.model, options.out)
    elif options.to == "marian":
        from dragoman.exchange.marian_export import export_marian

        export_marian(options.model, options.out)
    elif options.to == "ctranslate2":
        from dragoman.exchange.ctranslate2 import export_ctranslate2

        export_ctranslate2(options.model, options.out, quantisation)
    else:
        from dragoman.exchange.argos import export_argos

        export_argos(
            options.model,
            options.out,
            source_language=options.source_language,
            target_language=options.target_language,
            quantisation=quantisation,
            version=options.package_version or "1.0",
        )
    print(options.out)
