"""Renumber the pieces of a SentencePiece model by another toolkit's vocabulary.

Marian numbers subwords by a vocabulary of its own, which often serves two SentencePiece models at
once. Such a model is rewritten so that its ids are the vocabulary's: pieces that only the other
side has are added and never found in text, and those that the vocabulary does not have are put
behind its end, where they are unknown.
"""

import re
from collections.abc import Sequence

from dragoman.errors import FolderError
from dragoman.text.specification import SPACE_MARK, read_fields, write_field

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"
LANGUAGE_MARK = re.compile(f"{SPACE_MARK}?(>>.+<<)")
"""What tells a model of several target languages which one is wanted, before a sentence."""

# Field numbers of SentencePiece's model files, and its kinds of pieces. Numbers from 200 on are
# free for others; the size stands first, where it is found at once.
_SIZE, _PIECE = 200, 1
_TEXT, _SCORE, _KIND = 1, 2, 3
_NORMAL, _UNKNOWN_KIND, _CONTROL, _CHOSEN, _UNUSED = 1, 2, 3, 4, 5
_KINDS = {END: _CONTROL, UNKNOWN: _UNKNOWN_KIND, PADDING: _CONTROL}
_APART = "\U0010ffff"  # no character; before a piece that only the other side has


def order_pieces(model: bytes, names: Sequence[str], *, place: str) -> bytes:
    """Renumber the pieces of a model by a vocabulary.

    Parameters
    ----------
    model : bytes
        A SentencePiece model.
    names : sequence of str
        The vocabulary by id, “</s>”, “<unk>” and “<pad>” among them. A mark such as “>>fra<<” that
        the model does not have becomes a piece that is always kept whole.
    place : str
        What to call the model in messages.

    Returns
    -------
    bytes
        A SentencePiece model that cuts text as the given one does. Pieces that the vocabulary does
        not have follow behind its last id; those that only the vocabulary has are set apart by a
        character that no text has (see `plain_name`).

    Raises
    ------
    FolderError
        If the vocabulary names a piece twice or lacks a special one, or if the model calls unknown
        text otherwise.
    """
    missing = [name for name in _KINDS if name not in names]
    twice = len(names) - len(set(names))
    if missing or twice:
        fault = f"lacks {missing[0]}" if missing else f"has {twice} entries twice"
        raise FolderError(f"{place}: the vocabulary {fault}; get the model again")
    pieces: dict[str, bytes] = {}
    rest: list[bytes] = []
    for field, value in read_fields(model):
        if field == _PIECE and isinstance(value, bytes):
            text = _text_of(value, place)
            mark = LANGUAGE_MARK.fullmatch(text)
            if not text.startswith(_APART):
                pieces[mark[1] if mark else text] = value
        elif field != _SIZE:
            rest.append(write_field(field, value))
    if list(pieces) == list(names):
        return model
    ordered = [_make_piece(name, pieces) for name in names]
    known = set(names)
    ordered += [piece for name, piece in pieces.items() if name not in known]
    written = b"".join(write_field(_PIECE, piece) for piece in ordered)
    return write_field(_SIZE, len(names)) + written + b"".join(rest)


def drop_padding(model: bytes) -> bytes:
    """Remove the padding from a model, for toolkits that know none; later ids move up by one."""
    kept = []
    for field, value in read_fields(model):
        if field == _SIZE and isinstance(value, int):
            value -= 1
        if field != _PIECE or not isinstance(value, bytes) or _text_of(value, "") != PADDING:
            kept.append(write_field(field, value))
    return b"".join(kept)


def read_size(model: bytes) -> int | None:
    """Read the size of the vocabulary that a model was renumbered by."""
    field, value = next(read_fields(model), (0, 0))
    return value if field == _SIZE and isinstance(value, int) else None


def plain_name(piece: str) -> str:
    """Return the name of a piece in the vocabulary."""
    return piece.removeprefix(_APART)


def _text_of(piece: bytes, place: str) -> str:
    """Read a piece's text, refusing a model with another name for the unknown piece."""
    fields = dict(read_fields(piece))
    text = fields.get(_TEXT)
    if not isinstance(text, bytes):
        raise FolderError(f"{place}: has a damaged SentencePiece model; get the model again")
    name = text.decode()
    if (fields.get(_KIND, _NORMAL) == _UNKNOWN_KIND) != (name == UNKNOWN):
        raise FolderError(
            f"{place}: calls the unknown piece something else than {UNKNOWN}; train the model "
            "with the usual names"
        )
    return name


def _make_piece(name: str, pieces: dict[str, bytes]) -> bytes:
    """Reuse a piece, or make an unused one."""
    if name in _KINDS:
        return (
            write_field(_TEXT, name) + write_field(_SCORE, 0.0) + write_field(_KIND, _KINDS[name])
        )
    if name in pieces:
        return pieces[name]
    mark = LANGUAGE_MARK.fullmatch(name)
    if mark:
        text = write_field(_TEXT, SPACE_MARK + mark[1])
        return text + write_field(_SCORE, 0.0) + write_field(_KIND, _CHOSEN)
    text = write_field(_TEXT, _APART + name)
    return text + write_field(_SCORE, 0.0) + write_field(_KIND, _UNUSED)
