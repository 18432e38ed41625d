"""SentencePiece models whose pieces are whole words: text is cut at spaces alone.

Some models of other tools have a plain list of words, and unknown words between them. SentencePiece
itself would join neighbouring unknown words, so what it cuts is cut again here.
"""

from collections.abc import Sequence

from dragoman.text.piece_order import END, PADDING, UNKNOWN
from dragoman.text.specification import SPACE_MARK, write_field

# Field numbers of SentencePiece's model files, and its kinds of pieces and models.
_PIECE, _TRAINER, _NORMALISER = 1, 2, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_NORMAL, _UNKNOWN_KIND, _CONTROL = 1, 2, 3
_MODEL_TYPE, _WORDS, _RULES_NAME = 3, 3, 1
_KINDS = {END: _CONTROL, UNKNOWN: _UNKNOWN_KIND, PADDING: _CONTROL}
_SETTINGS = write_field(_TRAINER, write_field(_MODEL_TYPE, _WORDS)) + write_field(
    _NORMALISER, write_field(_RULES_NAME, "identity")
)


def make_whole_words(pieces: Sequence[str]) -> bytes:
    """Make a SentencePiece model of whole words.

    Parameters
    ----------
    pieces : sequence of str
        Different words, with “▁” before each; “</s>” and “<unk>” among them. “<pad>” is added.
    """
    written = []
    for piece in dict.fromkeys([*pieces, PADDING]):
        text = write_field(_TEXT, piece) + write_field(_SCORE, 0.0)
        written.append(write_field(_PIECE, text + write_field(_KIND, _KINDS.get(piece, _NORMAL))))
    return b"".join(written) + _SETTINGS


def has_whole_words(model: bytes) -> bool:
    """Whether `make_whole_words` made a model, whatever the order of its pieces is now."""
    return model.endswith(_SETTINGS)


def split_whole_words(pieces: Sequence[str]) -> list[str]:
    """Cut what SentencePiece joined because it knows none of it."""
    return [SPACE_MARK + word for piece in pieces for word in piece.split(SPACE_MARK)[1:]]
