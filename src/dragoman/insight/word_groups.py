"""Group subwords into words that are shown, masked and explained together."""

import unicodedata
from typing import NamedTuple

from dragoman.text.specification import SPACE_MARK
from dragoman.text.vocabulary import TextVocabulary

END = "⟨end⟩"

# Beginnings of the Unicode names of letters that are written without spaces between words.
_UNSPACED = ("CJK ", "HIRAGANA ", "KATAKANA ", "THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ")


class WordGroups(NamedTuple):
    """The tokens of a sentence, and the word index of each."""

    ids: tuple[int, ...]
    """Subword ids and the end symbol."""
    pieces: tuple[str, ...]
    """Their names."""
    words: tuple[str, ...]
    """The words as people write them; the last is the end symbol."""
    word_of: tuple[int, ...]
    """For each token the index of its word."""


def group_words(vocabulary: TextVocabulary, text: str) -> WordGroups:
    """Tokenise a text and group its tokens into words.

    Notes
    -----
    A word begins where a piece has a space before it, and in scripts that write no spaces with
    every piece. Bytes that make a character stay together.
    """
    ids = vocabulary.encode([text])[0]
    pieces = vocabulary.pieces(ids)
    word_of: list[int] = []
    for place, piece in enumerate(pieces):
        is_new = not place or begins_word(piece, pieces[place - 1])
        word_of.append((word_of[-1] if word_of else -1) + is_new)
    num_words = word_of[-1] + 1 if word_of else 0
    groups: list[list[int]] = [[] for _ in range(num_words)]
    for token_id, word in zip(ids, word_of, strict=True):
        groups[word].append(token_id)
    written = vocabulary.decode(groups) if groups else []
    names = ["".join(vocabulary.pieces(group)) for group in groups]
    words = [text or name for text, name in zip(written, names, strict=True)]
    return WordGroups(
        ids=(*ids, vocabulary.eos_id),
        pieces=(*pieces, END),
        words=(*words, END),
        word_of=(*word_of, num_words),
    )


def begins_word(piece: str, before: str) -> bool:
    """Say whether a subword begins a word."""
    if before == SPACE_MARK:
        return False
    if piece.startswith(SPACE_MARK):
        return True
    return unicodedata.name(piece[:1], "").startswith(_UNSPACED)
