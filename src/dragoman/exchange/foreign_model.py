"""Import any file or folder of another tool, finding out by its contents what it is."""

import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Literal

from dragoman.eight_bits import SCALES
from dragoman.errors import DragomanError, FolderError, OptionError
from dragoman.exchange.archives import is_archive, unpack
from dragoman.exchange.foreign_files import LANGUAGE_CODE
from dragoman.exchange.marian_binary import is_binary
from dragoman.exchange.unsupported import check_new
from dragoman.files import read_start, written_beside
from dragoman.folder import Facts, read_folder, write_description
from dragoman.text.target_marks import find_formality, find_targets, shorten

Kind = Literal["huggingface", "marian", "ctranslate2", "argos", "archive"]

ZIPPED = b"PK\x03\x04"
UNUSED = {"stanza", "minisbd", "spacy", "__MACOSX"}
"""Folders of splitters of sentences, which are many times as large as a model and not needed."""
MOST_ABOUT_BYTES = 100_000
_EXPECTED = (
    "a MarianMT folder (config.json), a model of Marian (.npz, .bin), a CTranslate2 folder "
    "(model.bin), a package of Argos Translate (.argosmodel) or a zip of OPUS-MT"
)
_ABOUT = re.compile(r"(README|LICEN[SC]E|COPYING|NOTICE|model_card)(\.(md|txt))?", re.IGNORECASE)
_SIDE = r"(?im)^[\s*-]*{} languages?(?:\(s\))?:\s*(\S+)\s*$"  # in a readme of OPUS-MT


def import_model(
    path: Path,
    out: Path,
    *,
    vocabularies: Sequence[Path] = (),
    short_list: Path | None = None,
    source_language: str | None = None,
    target_language: str | None = None,
    about: str = "",
) -> None:
    """Make a model folder of whatever another tool has written.

    Parameters
    ----------
    path : Path
        Its file or folder. What it is, is found out by its contents.
    out : Path
        The new model folder.
    vocabularies : Sequence[Path]
        Of Marian or CTranslate2, where they lie elsewhere: see `import_marian`.
    short_list : Path | None
        Of Marian, where it lies elsewhere.
    source_language : str | None
        Code of the language it translates from; None: what the model says.
    target_language : str | None
        Code of the language it translates to; None: what the model says.
    about : str
        What is known of the model besides, such as who made it; it goes into the model card first.

    Notes
    -----
    Readme and licence, if they lie beside the model, go into the model card. If the vocabulary has
    marks of target languages (“>>fra<<”), these are noted, for the option “into” to choose from.
    """
    kind = find_kind(path)
    check_new(out)
    parent = out.absolute().parent
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=parent) as scratch:
        folder = path
        if kind == "archive":
            unpacked = Path(scratch) / "unpacked"
            unpack(path, unpacked, is_wanted)
            folder = _find_model(unpacked, path)
        made = Path(scratch) / "model"
        try:
            _import(folder, made, vocabularies, short_list, source_language, target_language)
        except DragomanError as error:
            raise type(error)(str(error).replace(f"{scratch}/unpacked", str(path))) from None
        _add_facts(made, about, _read_about(folder) if folder.is_dir() else "")
        with written_beside(out) as beside:
            made.replace(beside)


def find_kind(path: Path) -> Kind:
    """Find out what a file or folder is.

    Parameters
    ----------
    path : Path
        The file or folder.

    Returns
    -------
    Kind
        The tool that wrote it; “archive”: it must be unpacked first.
    """
    if not path.exists():
        raise FolderError(f"{path}: is not there")
    if path.is_dir():
        return _kind_of_folder(path)
    if path.suffix == ".npz" or _is_npz(path) or is_binary(path):
        return "marian"
    if is_archive(path):
        return "archive"
    raise FolderError(f"{path}: is no model that can be imported; give {_EXPECTED}")


def is_wanted(name: PurePosixPath) -> bool:
    """Say whether a file of an archive may be needed."""
    return not UNUSED.intersection(name.parts)


def _import(
    path: Path,
    out: Path,
    vocabularies: Sequence[Path],
    short_list: Path | None,
    source_language: str | None,
    target_language: str | None,
) -> None:
    """Import with the importer of the kind."""
    kind = find_kind(path)
    languages = {"source_language": source_language, "target_language": target_language}
    if vocabularies and kind not in ("marian", "ctranslate2"):
        raise OptionError("--vocabulary is for models of Marian and CTranslate2; leave it out")
    if short_list and kind != "marian":
        raise OptionError("--short-list is for models of Marian; leave it out")
    if kind == "huggingface":
        from dragoman.exchange.huggingface import import_huggingface

        import_huggingface(path, out, **languages)
    elif kind == "ctranslate2":
        from dragoman.exchange.ctranslate2_import import import_ctranslate2

        facts = Facts(source_language=source_language, target_language=target_language)
        import_ctranslate2(path, out, subwords=vocabularies, facts=facts)
    elif kind == "argos":
        from dragoman.exchange.argos_import import import_argos

        import_argos(path, out, **languages)
    else:
        from dragoman.exchange.marian import import_marian

        if path.is_dir():
            _check_subwords(path)
        import_marian(path, out, vocabularies=vocabularies, short_list=short_list, **languages)


def _check_subwords(path: Path) -> None:
    """Refuse OPUS-MT's first releases, whose text other programs must cut."""
    if (path / "source.bpe").exists() and not (path / "source.spm").exists():
        raise FolderError(
            f"{path / 'source.bpe'}: cuts words by BPE that Moses’ tokeniser and truecaser have "
            "prepared, as in OPUS-MT’s releases of 2019; get a newer release of this pair, which "
            "has source.spm"
        )


def _read_about(folder: Path) -> str:
    """Read what the makers of a model say of it, in its folder or the one around it."""
    texts = []
    left = MOST_ABOUT_BYTES
    for each in sorted(folder.iterdir()):
        if _ABOUT.fullmatch(each.name) and each.is_file():
            text = read_start(each, left).decode("utf-8", "replace").strip()
            left -= len(text.encode())
            texts.append(text)
    return "\n\n".join(filter(None, texts))


def _add_facts(path: Path, about: str, read: str) -> None:
    """Add to a new model folder what was said and read of it, and which target languages it has."""
    folder = read_folder(path)
    facts, source = folder.facts, folder.vocabularies.source
    pieces = source.pieces(range(len(source)))
    targets = find_targets(pieces)
    facts = replace(
        facts,
        source_language=facts.source_language or _language_in(read, "source"),
        target_language=facts.target_language or _language_in(read, "target"),
        target_languages=targets,
        formality=facts.formality or find_formality(pieces),
        about="\n\n".join(filter(None, (about, facts.about, read))),
    )
    num_parameters = sum(
        math.prod(folder.open_weights().shape(name))
        for name in folder.open_weights().names
        if not name.endswith(SCALES)
    )
    write_description(path, replace(folder, facts=facts), num_parameters)


def _language_in(about: str, side: str) -> str | None:
    """Find a language in a readme of OPUS-MT, if it names one for this side."""
    found = re.search(_SIDE.format(side), about)
    is_code = found is not None and LANGUAGE_CODE.fullmatch(found[1])
    return shorten(found[1]) if found and is_code else None


def _kind_of_folder(path: Path) -> Kind:
    names = {each.name for each in path.iterdir()}
    if "metadata.json" in names and (path / "model" / "model.bin").exists():
        return "argos"
    if "model.bin" in names and not is_binary(path / "model.bin"):
        return "ctranslate2"
    if "config.json" in names:
        return "huggingface"
    if any(name.endswith((".npz", ".bin")) for name in names):
        return "marian"
    raise FolderError(f"{path}: holds no model that can be imported; give {_EXPECTED}")


def _is_npz(path: Path) -> bool:
    """Whether a file is a zip archive that begins with an array, as NumPy and Marian write."""
    start = read_start(path, 1024)
    name = start[30 : 30 + int.from_bytes(start[26:28], "little")]
    return start.startswith(ZIPPED) and name.endswith(b".npy")


def _find_model(folder: Path, archive: Path) -> Path:
    """Find the first folder of an unpacked archive that holds a model, the outermost first."""
    inner = [folder, *sorted(each for each in folder.rglob("*") if each.is_dir())]
    for each in inner:
        try:
            find_kind(each)
        except FolderError:
            continue
        return each
    raise FolderError(f"{archive}: holds no model that can be imported; give {_EXPECTED}")
