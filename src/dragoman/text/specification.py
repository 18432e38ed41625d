"""Read the training settings and merges of a SentencePiece model from its protocol buffer.

Its file is a protocol buffer, and so is that of some other tools: `read_fields` and `write_field`.
"""

# Why not `sentencepiece.sentencepiece_model_pb2`: it needs `protobuf`, which would be one more
# dependency (SentencePiece does not install it), takes longer to import (31 ms) than SentencePiece
# (21 ms), cannot keep field 200 first (`piece_order`), and ONNX files need `write_field` anyway.
# Both read and write the same, as tests show.
import struct
from collections.abc import Iterator

SPACE_MARK = "\u2581"
"""How SentencePiece writes a space."""

# Field numbers of SentencePiece's model files: of the file, of its trainer, of its normaliser.
_PIECE, _TRAINER, _NORMALISER = 1, 2, 3
_PIECE_TEXT, _PIECE_SCORE, _PIECE_KIND = 1, 2, 3
_MODEL_TYPE, _SPACE_AS_SUFFIX = 3, 24
_RULES_NAME, _SPACE_SETTINGS = 1, (3, 4, 5)
_BYTE_PAIRS, _CHARACTERS = 2, 4
_NORMAL, _FREELY_CHOSEN = 1, (4, 5)  # a user's own pieces, and those not to be used


def is_cut_at_spaces(model: bytes) -> bool:
    """Whether a model was trained with `train_subwords`' settings about spaces.

    Returns
    -------
    bool
        True if it merges bytes pairs or has single characters, with normalisation rules of a
        user's own, and puts one space before each word. If no piece of it has a space inside,
        words are then encoded independently of each other.

    Notes
    -----
    Other kinds of model add the scores of a whole sentence up, so that rounding may decide between
    two spellings of a word; built-in rules may change what stands at a space.
    """
    sections = dict(read_fields(model))  # of repeated fields, which are the pieces, the last
    trainer, normaliser = (
        dict(read_fields(section)) if isinstance(section, bytes) else {}
        for section in (sections.get(_TRAINER), sections.get(_NORMALISER))
    )
    return (
        trainer.get(_MODEL_TYPE) in (_BYTE_PAIRS, _CHARACTERS)
        and not trainer.get(_SPACE_AS_SUFFIX)
        and normaliser.get(_RULES_NAME) == b"user_defined"
        and all(normaliser.get(setting, 1) for setting in _SPACE_SETTINGS)
    )


def is_merged(model: bytes) -> bool:
    """Whether a model is plain byte-pair encoding, its merges ordered by score.

    Returns
    -------
    bool
        False for other kinds of model, and if a user chose pieces that are never, or always, to be
        kept whole.
    """
    sections = dict(read_fields(model))
    trainer = sections.get(_TRAINER)
    model_type = dict(read_fields(trainer)).get(_MODEL_TYPE) if isinstance(trainer, bytes) else None
    kinds = {piece.get(_PIECE_KIND, _NORMAL) for piece in _read_pieces(model)}
    return model_type == _BYTE_PAIRS and kinds.isdisjoint(_FREELY_CHOSEN)


def read_merges(model: bytes) -> dict[str, tuple[int, float]]:
    """Read the characters and merged pieces of a model."""
    merges = {}
    for piece_id, piece in enumerate(_read_pieces(model)):
        text, score = piece.get(_PIECE_TEXT), piece.get(_PIECE_SCORE, bytes(4))
        if piece.get(_PIECE_KIND, _NORMAL) == _NORMAL:
            assert isinstance(text, bytes)
            assert isinstance(score, bytes)
            merges[text.decode()] = (piece_id, struct.unpack("<f", score)[0])
    return merges


def _read_pieces(model: bytes) -> Iterator[dict[int, int | bytes]]:
    for field, value in read_fields(model):
        if field == _PIECE and isinstance(value, bytes):
            yield dict(read_fields(value))


def read_fields(contents: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Read the fields of a protocol buffer.

    Yields
    ------
    tuple[int, int | bytes]
        A field's number, and its value: a number, or the bytes of anything else.
    """
    place = 0

    def read_number() -> int:
        nonlocal place
        number = shift = 0
        while shift < 64:
            byte = contents[place]
            place += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number
        raise ValueError("a number of over ten bytes")

    while place < len(contents):
        key = read_number()
        if key & 7 == 0:
            yield key >> 3, read_number()
            continue
        size = {1: 8, 5: 4}.get(key & 7) or read_number()
        yield key >> 3, contents[place : place + size]
        place += size


def write_field(number: int, value: int | float | str | bytes) -> bytes:
    """Write one field of a protocol buffer.

    Parameters
    ----------
    number : int
        Which field.
    value : int | float | str | bytes
        A number, which is not negative if whole; a text; or the bytes of anything else, such as
        fields within the field.
    """
    if isinstance(value, float):
        return _write_number(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, int):
        return _write_number(number << 3) + _write_number(value)
    contents = value.encode() if isinstance(value, str) else value
    return _write_number(number << 3 | 2) + _write_number(len(contents)) + contents


def _write_number(number: int) -> bytes:
    """Write a varint."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes((*written, number))
