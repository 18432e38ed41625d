"""Import packages of Argos Translate: a CTranslate2 model with one SentencePiece model."""

from pathlib import Path

from dragoman.errors import FolderError
from dragoman.exchange.ctranslate2_import import import_ctranslate2
from dragoman.exchange.foreign_files import LANGUAGE_CODE, read_object
from dragoman.folder import Facts

METADATA, MODEL = "metadata.json", "model"
SENTENCEPIECE, BPE = "sentencepiece.model", "bpe.model"
BEAM_SIZE = 4
"""What Argos searches with."""


def import_argos(
    path: Path, out: Path, *, source_language: str | None = None, target_language: str | None = None
) -> None:
    """Convert the folder of an Argos package to a model folder.

    Parameters
    ----------
    path : Path
        The unpacked package.
    out : Path
        The new model folder.
    source_language : str | None
        Code of the language it translates from; None: what the package says.
    target_language : str | None
        Code of the language it translates to; None: what the package says.

    Notes
    -----
    The package's splitter of sentences is not needed: Dragoman has one. Argos makes spaces of
    underscores in translations; here they stay.
    """
    metadata = read_object(path / METADATA)
    kind = metadata.get("type", "translate")
    if kind != "translate":
        raise FolderError(f"{path / METADATA}: is a package for “{kind}”, not for “translate”")
    if metadata.get("target_prefix"):
        raise FolderError(
            f"{path / METADATA}: begins translations with “{metadata['target_prefix']}”, which "
            "is not supported here"
        )
    if not (path / SENTENCEPIECE).exists():
        if (path / BPE).exists():
            raise FolderError(
                f"{path / BPE}: is a list of merges over words that Moses’ tokeniser has cut, "
                f"which is not supported; get a version of this package with {SENTENCEPIECE}"
            )
        raise FolderError(f"{path}: has no {SENTENCEPIECE}; get the package again")
    codes = []
    for name, given in (("from_code", source_language), ("to_code", target_language)):
        code = given or metadata.get(name)
        if not isinstance(code, str) or not LANGUAGE_CODE.fullmatch(code):
            raise FolderError(f"{path / METADATA}: {name} is no language code; get it again")
        codes.append(code)
    names = [str(metadata.get(name) or "?")[:80] for name in ("from_name", "to_name")]
    version = str(metadata.get("package_version") or "?")[:20]
    import_ctranslate2(
        path / MODEL,
        out,
        subwords=[path / SENTENCEPIECE],
        facts=Facts(
            source_language=codes[0],
            target_language=codes[1],
            about=f"{names[0]} → {names[1]}, version {version} of a package for Argos Translate.",
        ),
        search={"beam_size": BEAM_SIZE},
    )
