"""The verb “import”; nothing heavy is imported before it runs."""

import argparse
from pathlib import Path

from dragoman.cli.flags import add_languages, add_verb
from dragoman.errors import FolderError, OptionError


def add_import(verbs: argparse._SubParsersAction) -> None:
    """Add the verb “import”."""
    parser = add_verb(verbs, "import", "make a model folder of another tool's model", _import)
    parser.add_argument(
        "path", type=Path, metavar="FOLDER",
        help="a MarianMT folder, such as OPUS-MT's, or Marian's .npz or a folder with one",
    )  # fmt: skip
    parser.add_argument("out", type=Path, metavar="OUT", help="the new model folder")
    add_languages(parser, "else what the folder says")
    parser.add_argument(
        "--vocabulary", nargs="+", type=Path, default=[], metavar="FILE",
        help="of Marian: .yml or .spm, for both sides or for each (default: beside the .npz)",
    )  # fmt: skip


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
