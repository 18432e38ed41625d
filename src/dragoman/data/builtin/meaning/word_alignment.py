"""The true alignment of built-in pairs, between words as blanks part them."""

from collections.abc import Sequence

from dragoman.data.builtin.generator import AlignedPair


def link_spaced_words(pair: AlignedPair) -> frozenset[tuple[int, int]]:
    """Link the words of a pair's texts that blanks part.

    Returns
    -------
    frozenset[tuple[int, int]]
        Pairs (source word index, target word index): “l’Afrique” is linked to what “l’” and
        “Afrique” are linked to.
    """
    source = _spaced_indices(pair.source, pair.source_words)
    target = _spaced_indices(pair.target, pair.target_words)
    return frozenset((source[one], target[other]) for one, other in pair.alignment)


def _spaced_indices(text: str, words: Sequence[str]) -> list[int]:
    """Find in which part between blanks each word is."""
    indices = []
    place = 0
    for word in words:
        place = text.index(word, place)
        indices.append(text.count(" ", 0, place))
        place += len(word)
    return indices
