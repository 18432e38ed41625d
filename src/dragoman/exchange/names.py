"""Names and order of subwords in other toolkits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dragoman.errors import FolderError
from dragoman.text.piece_order import END, LANGUAGE_MARK, PADDING, UNKNOWN, order_pieces
from dragoman.text.subwords import Subwords
from dragoman.text.vocabulary import Vocabularies

SPECIAL = (END, UNKNOWN, PADDING)


def names_of(subwords: Subwords, *, place: Path) -> list[str]:
    """List a vocabulary's entries by id, with special symbols named as other toolkits do."""
    names = subwords.pieces(range(len(subwords)))
    special = {subwords.eos_id: END, subwords.unk_id: UNKNOWN, subwords.pad_id: PADDING}
    for piece_id, name in special.items():
        names[piece_id] = name
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise FolderError(f"{place}: two subwords would be called “{twice}”; nothing is written")
    return names


def plain_marks(names: Sequence[str]) -> list[str]:
    """Rewrite target-language marks as Marian does, without the leading space."""
    marks = ((name, LANGUAGE_MARK.fullmatch(name)) for name in names)
    return [mark[1] if mark else name for name, mark in marks]


def marian_order(subwords: Subwords) -> list[int]:
    """Order ids as Marian does: end, unknown, the others, padding."""
    special = (subwords.eos_id, subwords.unk_id, subwords.pad_id)
    others = [piece_id for piece_id in range(len(subwords)) if piece_id not in special]
    return [subwords.eos_id, subwords.unk_id, *others, subwords.pad_id]


def own_order(names: Sequence[str], *, place: str) -> list[int]:
    """Order ids of another toolkit as ours: the three special symbols first."""
    ids = {name: piece_id for piece_id, name in enumerate(names)}
    missing = [name for name in SPECIAL if name not in ids]
    if missing:
        raise FolderError(f"{place}: has no entry “{missing[0]}”; get the model again")
    first = [ids[name] for name in SPECIAL]
    return [*first, *(piece_id for piece_id in range(len(names)) if piece_id not in first)]


def names_by_id(ids: Mapping[str, Any], *, place: str) -> list[str]:
    """Invert a map from names to ids, checking that ids are contiguous."""
    names: dict[int, str] = {}
    for name, piece_id in ids.items():
        if not _is_text(name):
            raise FolderError(f"{place}: {name!r} is half a character; get the model again")
        is_new = type(piece_id) is int and piece_id not in names
        if not is_new or piece_id not in range(len(ids)):
            raise FolderError(
                f"{place}: “{name}” has the id {piece_id}, but the {len(ids)} ids must count up "
                "from 0; get the model again"
            )
        names[piece_id] = name
    return [names[piece_id] for piece_id in range(len(ids))]


def _is_text(name: str) -> bool:
    """Whether a name is valid Unicode, without lone surrogates."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def build_vocabularies(
    models: tuple[bytes, bytes], names: tuple[Sequence[str], Sequence[str]], *, place: Path
) -> Vocabularies:
    """Build vocabularies from SentencePiece models with another toolkit's numbering."""
    source, target = (_order(model, side, place) for model, side in zip(models, names, strict=True))
    if source.to_bytes() == target.to_bytes():
        return Vocabularies(source, source)
    return Vocabularies(source, target)


def _order(model: bytes, names: Sequence[str], place: Path) -> Subwords:
    """Renumber the pieces of a SentencePiece model by a vocabulary.

    Its library passes over fields that it does not know, in which anything may be.
    """
    try:
        if list_pieces(model) is not None:
            return Subwords.from_bytes(order_pieces(model, names, place=str(place)))
    except (ValueError, IndexError, RuntimeError):
        pass
    raise FolderError(f"{place}: has a damaged SentencePiece model; get the model again")


def list_pieces(model: bytes) -> list[str] | None:
    """List the pieces of a SentencePiece model."""
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    try:
        processor.LoadFromSerializedProto(model)
        return processor.id_to_piece(list(range(len(processor))))
    except (RuntimeError, UnicodeDecodeError):
        return None
