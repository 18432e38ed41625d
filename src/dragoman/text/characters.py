"""Character vocabularies, as SentencePiece models with byte fallback."""

from collections import Counter
from collections.abc import Iterable

from dragoman.errors import DataError, OptionError
from dragoman.text.normalise import normalise
from dragoman.text.options import SMALLEST_VOCABULARY
from dragoman.text.subwords import NUM_FIXED_PIECES, RESERVED, train_sentencepiece

_LINE_CHARACTERS = 500


def learn_characters(sentences: Iterable[str], *, vocabulary_size: int | None = None) -> bytes:
    """Build a SentencePiece model of the frequent characters of a text.

    Parameters
    ----------
    sentences : iterable of str
        Raw text, of both languages for a joint model; read once, as a stream.
    vocabulary_size : int or None
        Entries at most, 256 bytes and four symbols among them; None: as many as there are
        characters seen often enough to be learnt.

    Returns
    -------
    bytes
        A SentencePiece model for `Subwords`, with the special symbols of `train_subwords`. Equal
        sentences give equal bytes.

    Raises
    ------
    DataError
        If there is no text in the sentences.
    OptionError
        If the vocabulary is smaller than bytes and letters need.

    Notes
    -----
    As in `train_subwords`, often enough is ten times, or fewer in a corpus below 200,000
    characters, and what is rarer is written as bytes. Each chosen character is shown to
    SentencePiece once: it has nothing to find out but the set.
    """
    if vocabulary_size is not None and vocabulary_size < SMALLEST_VOCABULARY:
        raise OptionError(
            f"vocabulary_size: {vocabulary_size} is too small, as 256 entries are bytes; "
            f"give at least {SMALLEST_VOCABULARY}"
        )
    chosen = _choose_characters(sentences, vocabulary_size)
    # Spaces between them keep marks from joining the letter before.
    lines = (
        " ".join(chosen[first : first + _LINE_CHARACTERS])
        for first in range(0, len(chosen), _LINE_CHARACTERS)
    )
    return train_sentencepiece(lines, model_type="char", vocab_size=NUM_FIXED_PIECES + len(chosen))


def _choose_characters(sentences: Iterable[str], vocabulary_size: int | None) -> list[str]:
    """Choose the most frequent characters."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(normalise(sentence))
    for character in (" ", *RESERVED):
        counts.pop(character, None)
    if not counts:
        raise DataError(
            "characters: the corpus has no text to learn from; check the files and the filters"
        )
    fewest = min(10, 1 + counts.total() // 20_000)
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    room = None if vocabulary_size is None else vocabulary_size - NUM_FIXED_PIECES
    return [character for character in frequent[:room] if counts[character] >= fewest]
