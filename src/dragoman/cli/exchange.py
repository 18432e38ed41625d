"""The verbs “export” and “import”; nothing heavy is imported before one runs."""

import argparse
from pathlib import Path
from typing import Any

from dragoman.cli.flags import Parser, add_verb
from dragoman.errors import FolderError, OptionError

FORMATS = ("huggingface", "ctranslate2", "argos", "marian")
QUANTISATIONS = (
    "float32", "float16", "bfloat16", "int16", "int8", "int8_float32", "int8_float16",
    "int8_bfloat16",
)  # fmt: skip


def add_exchange(verbs: argparse._SubParsersAction) -> None:
    """Add the verbs “export” and “import”."""
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
    _add_languages(parser, "for Argos; else what the model says")
    parser.add_argument(
        "--package-version", metavar="N.N", help="of an Argos package (default: 1.0)"
    )
    parser = add_verb(verbs, "import", "make a model folder of another tool's model", _import)
    parser.add_argument(
        "path", type=Path, metavar="FOLDER",
        help="a MarianMT folder, such as OPUS-MT's, or Marian's .npz or a folder with one",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT", help="the new model folder")
    _add_languages(parser, "else what the folder says")
    parser.add_argument(
        "--vocabulary", nargs="+", type=Path, default=[], metavar="FILE",
        help="of Marian: .yml or .spm, for both sides or for each (default: beside the .npz)",
    )  # fmt: skip


def _add_languages(parser: Parser, text: str) -> None:
    for side, example in (("source", "de"), ("target", "en")):
        parser.add_argument(f"--{side}-language", metavar="CODE", help=f"such as {example}: {text}")


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


def _import(options: argparse.Namespace) -> None:
    path: Path = options.path
    if not path.exists():
        raise FolderError(f"{path}: is not there")
    languages = {
        "source_language": options.source_language,
        "target_language": options.target_language,
    }
    if path.is_dir() and (path / "config.json").exists():
        from dragoman.exchange.huggingface import import_huggingface

        if options.vocabulary:
            raise OptionError("--vocabulary means nothing for a MarianMT folder; leave it out")
        import_huggingface(path, options.out, **languages)
    elif path.is_dir() or path.suffix == ".npz":
        from dragoman.exchange.marian import import_marian

        if path.is_dir() and not any(path.glob("*.npz")):
            raise FolderError(f"{path}: has neither config.json nor a .npz file; see --help")
        import_marian(path, options.out, vocabularies=options.vocabulary, **languages)
    else:
        raise FolderError(f"{path}: is neither a folder nor a .npz file; see --help")
    print(options.out)
