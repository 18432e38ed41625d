"""Export to packages of Argos Translate (``.argosmodel``), which LibreTranslate serves too."""

import json
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from dragoman.errors import OptionError
from dragoman.exchange.ctranslate2 import SUBWORDS, Quantisation, write_ctranslate2
from dragoman.exchange.sentence_splitter import write_splitter
from dragoman.exchange.unsupported import check_for_ctranslate2, check_new, subwords_of
from dragoman.files import written_beside
from dragoman.folder import read_folder

SUFFIX = ".argosmodel"
ARGOS_VERSION = "1.11.0"
"""The version of Argos Translate that packages are made for."""

_THE_DATE = (1980, 1, 1, 0, 0, 0)  # so that equal models give equal packages

NAMES = {
    "ar": "Arabic", "az": "Azerbaijani", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan",
    "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew",
    "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian", "it": "Italian", "ja": "Japanese",
    "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "ms": "Malay", "nb": "Norwegian",
    "nl": "Dutch", "pb": "Portuguese (Brazil)", "pl": "Polish", "pt": "Portuguese",
    "ro": "Romanian", "ru": "Russian", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian",
    "sv": "Swedish", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian",
    "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese", "zt": "Chinese (traditional)",
}  # fmt: skip
"""What people see; a language that is not here is called by its code."""


def export_argos(
    path: Path,
    out: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    quantisation: Quantisation = "float32",
    version: str = "1.0",
) -> None:
    """Write a model as a package that Argos Translate installs.

    Parameters
    ----------
    path : Path
        The model folder.
    out : Path
        The new file, whose name ends in “.argosmodel”.
    source_language : str | None
        Code of the language it translates from; None: what the folder says.
    target_language : str | None
        Code of the language it translates to; None: what the folder says.
    quantisation : Quantisation
        How weights are stored.
    version : str
        The package's version.

    Notes
    -----
    The package holds a CTranslate2 model, one SentencePiece model, which both cuts and joins (it
    joins pieces that it does not know as they are), and a splitter of sentences, so that nothing
    has to be fetched.
    """
    if out.suffix != SUFFIX:
        raise OptionError(f"{out}: give a name that ends in {SUFFIX}")
    if not re.fullmatch(r"\d+(\.\d+)*", version):
        raise OptionError(f"--package-version {version}: give numbers and dots, such as 1.0")
    folder = read_folder(path)
    check_for_ctranslate2(folder)
    check_new(out)
    source = _check_code(source_language or folder.facts.source_language, "source")
    target = _check_code(target_language or folder.facts.target_language, "target")
    metadata = {
        "type": "translate",
        "package_version": version,
        "argos_version": ARGOS_VERSION,
        "from_code": source,
        "from_name": NAMES.get(source, source),
        "to_code": target,
        "to_name": NAMES.get(target, target),
        "links": [],
    }
    root = f"translate-{source}_{target}-{version.replace('.', '_')}"
    with (
        written_beside(out) as beside,
        tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=out.parent) as scratch,
    ):
        model = Path(scratch) / "model"
        write_ctranslate2(folder, model, quantisation)
        files = {
            "metadata.json": json.dumps(metadata, indent=1).encode(),
            "sentencepiece.model": subwords_of(folder)[0].to_bytes(),
            f"minisbd/{source}.onnx": write_splitter(source),
            "README.md": _introduce(metadata).encode(),
        }
        for file in sorted(model.iterdir()):
            if file.name not in SUBWORDS:
                files[f"model/{file.name}"] = file.read_bytes()
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, contents in files.items():
                entry = zipfile.ZipInfo(f"{root}/{name}", _THE_DATE)
                zipped.writestr(entry, contents, zipfile.ZIP_DEFLATED)


def _check_code(code: str | None, side: str) -> str:
    """Check a language code, which becomes part of file names."""
    if code is None:
        raise OptionError(
            f"the model does not say its {side} language, which Argos must know; give "
            f"--{side}-language"
        )
    if not re.fullmatch(r"[A-Za-z]+([-_][A-Za-z0-9]+)*", code):
        raise OptionError(f"--{side}-language {code}: give a code such as en")
    return code


def _introduce(metadata: Mapping[str, object]) -> str:
    """Write the package's README."""
    languages = f"{metadata['from_name']} → {metadata['to_name']}"
    return f"# {languages}\n\nA translation model made with Dragoman.\n"
