"""Find and read the vocabularies of a Marian model."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import FolderError, OptionError
from dragoman.exchange.foreign_files import MOST_VOCABULARY_BYTES
from dragoman.exchange.marian_files import read_decoder_settings, read_yaml_vocabulary
from dragoman.exchange.names import SPECIAL, list_pieces, names_by_id
from dragoman.files import read_bounded
from dragoman.text.piece_order import PADDING
from dragoman.text.specification import SPACE_MARK
from dragoman.text.whole_words import make_whole_words

YAML = (".yml", ".yaml", ".json")
SIDES = ("source", "target")
_SOURCE, _TARGET = re.compile(r"src|source"), re.compile(r"trg|tgt|target")


class Side(NamedTuple):
    """The vocabulary of one side.

    Parameters
    ----------
    file : Path
        Where it was read.
    names : list[str]
        Its entries by Marian's ids, and the padding at the end.
    model : bytes
        The SentencePiece model that cuts text into them.
    """

    file: Path
    names: list[str]
    model: bytes


def read_vocabularies(
    model: Path, given: Sequence[Path], sizes: tuple[int, int]
) -> tuple[Side, Side]:
    """Read the vocabularies of both sides.

    Parameters
    ----------
    model : Path
        The file of the model.
    given : Sequence[Path]
        The vocabulary, or that of each side; none: those that the settings beside the model name,
        or else what lies there.
    sizes : tuple[int, int]
        How many words the model has vectors for.
    """
    if len(given) > len(SIDES):
        raise OptionError("--vocabulary: give one for both sides, or that of each")
    files = list(given) or _list_named(model) or _find(model.parent)
    source, target = (
        _read_side(file, model.parent / f"{side}.spm", size)
        for file, side, size in zip((files[0], files[-1]), SIDES, sizes, strict=True)
    )
    return source, target


def _read_side(file: Path, splitter: Path, size: int) -> Side:
    """Read one vocabulary, and what cuts text into its entries."""
    if file.suffix == ".spm":
        model = read_bounded(file, MOST_VOCABULARY_BYTES)
        pieces = list_pieces(model)
        if pieces is None:
            raise FolderError(
                f"{file}: is not a SentencePiece model, or damaged; get the model again"
            )
        names = pieces
    elif file.suffix in YAML:
        # Marian takes of a vocabulary in YAML as many words as the model has.
        names = names_by_id(read_yaml_vocabulary(file), place=str(file))[:size]
        if splitter.exists():
            model = read_bounded(splitter, MOST_VOCABULARY_BYTES)
        else:
            names = _spell_words(names, file, splitter)
            model = make_whole_words(names)
    else:
        raise FolderError(
            f"{file}: is a vocabulary of another kind than .spm, .yml and .json (such as factors), "
            "which is not supported here"
        )
    if len(names) != size:
        raise FolderError(
            f"{file}: has {len(names):,} entries, but the model has words for {size:,}; name the "
            "vocabulary that it was trained with by --vocabulary"
        )
    # Marian has no padding: what is called so is an entry like any other.
    names = [f"{name}?" if name == PADDING else name for name in names]
    return Side(file, [*names, PADDING], model)


def _spell_words(names: list[str], file: Path, splitter: Path) -> list[str]:
    """Rewrite words as SentencePiece does, with the space before them."""
    marked = next((name for name in names if SPACE_MARK in name), None)
    if marked is not None:
        raise FolderError(
            f"{file}: has subwords of SentencePiece, such as “{marked}”; put the SentencePiece "
            f"model that cut the text at {splitter}"
        )
    return [name if name in SPECIAL else SPACE_MARK + name for name in names]


def _list_named(model: Path) -> list[Path]:
    """List the vocabularies that the decoder's settings beside a model name."""
    own, common = model.with_name(f"{model.name}.decoder.yml"), model.with_name("decoder.yml")
    for settings in (own, common):
        said = read_decoder_settings(settings) if settings.is_file() else {}
        if settings == common and model.name not in map(_last_part, _items(said.get("models"))):
            continue
        named = _items(said.get("vocabs"))
        files = [model.parent / _last_part(each) for each in named]
        if len(set(named)) > len(set(files)):
            raise FolderError(
                f"{settings}: names two vocabularies that are both called “{files[0].name}”; name "
                "them with --vocabulary"
            )
        for file in files:
            if not file.is_file():
                raise FolderError(
                    f"{settings}: names the vocabulary “{file.name}”, which is not beside the "
                    "model; put it there, or name it with --vocabulary"
                )
        if files:
            return [files[0], files[-1]]
    return []


def _items(text: str | None) -> list[str]:
    """Cut a list of YAML, in brackets or with dashes."""
    parts = re.split(r"\s*,\s*|(?:^|\s)-\s+", (text or "").strip("[] "))
    return [part.strip("\"' ") for part in parts if part.strip("\"' ")]


def _last_part(path: str) -> str:
    """Return a file's name: where it lay elsewhere means nothing here."""
    return re.split(r"[/\\]", path)[-1]


def _find(folder: Path) -> list[Path]:
    """Find the one vocabulary beside a model, or that of each side."""
    kinds = (".spm", *YAML)
    found = sorted(each for each in folder.glob("*vocab*") if each.suffix in kinds)
    if len(found) == len(SIDES):
        source = [each for each in found if _SOURCE.match(each.name)]
        target = [each for each in found if _TARGET.match(each.name)]
        if len(source) == len(target) == 1:
            return source + target
    if len(found) != 1:
        many = f"{len(found)} vocabularies" if found else "no vocabulary (*vocab*.yml, *vocab*.spm)"
        raise FolderError(f"{folder}: has {many}; name the right one with --vocabulary")
    return found
