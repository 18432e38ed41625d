"""The verb “export”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path
from typing import Any

from dragoman.cli.flags import add_languages, add_model, add_verb
from dragoman.errors import OptionError

FORMATS = ("huggingface", "ctranslate2", "argos", "marian", "marian-bin", "bergamot")
QUANTISATIONS = (
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16",
    "int8_bfloat16",
)  # fmt: skip


def add_export(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “export”."""
    parser = add_verb(verbs, "export", "write a model for another tool", _export)
    add_model(parser)
    parser.add_argument(
        "--to", required=True, choices=FORMATS,
        help="transformers' MarianMT, CTranslate2, a package of Argos Translate, Marian (.npz), "
        "Marian (.bin), or Bergamot (.bin in eight bits, as in Firefox)",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder, or NAME.argosmodel")
    parser.add_argument(
        "--quantisation", choices=QUANTISATIONS,
        help="how CTranslate2, Argos and marian-bin (float32 or int8) store weights (default: "
        "float32)",
    )  # fmt: skip
    add_languages(parser, "for Argos; else what the model says")
    parser.add_argument(
        "--package-version", metavar="N.N", help="of an Argos package (default: 1.0)"
    )


def _export(options: argparse.Namespace) -> None:
    unheeded = ["source_language", "target_language", "package_version"]
    if options.to in ("huggingface", "marian", "bergamot"):
        unheeded.append("quantisation")
    for name in unheeded if options.to != "argos" else ():
        if getattr(options, name) is not None:
            flag = name.replace("_", "-")
            raise OptionError(f"--{flag} means nothing with --to {options.to}; leave it out")
    quantisation: Any = options.quantisation or "float32"
    if options.to == "huggingface":
        from dragoman.exchange.huggingface import export_huggingface

        export_huggingface(options.model, options.out)
    elif options.to in ("marian", "marian-bin", "bergamot"):
        _export_marian(options, quantisation)
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


def _export_marian(options: argparse.Namespace, quantisation: str) -> None:
    """Export in one of the files of Marian."""
    from dragoman.exchange.marian_export import Container, export_marian

    containers: dict[tuple[str, str], Container] = {
        ("marian", "float32"): "npz",
        ("marian-bin", "float32"): "bin",
        ("marian-bin", "int8"): "intgemm8",
        ("bergamot", "float32"): "bergamot",
    }
    if (options.to, quantisation) not in containers:
        raise OptionError(
            f"--quantisation {quantisation}: marian-bin has float32 and int8; give one"
        )
    export_marian(options.model, options.out, containers[options.to, quantisation])
