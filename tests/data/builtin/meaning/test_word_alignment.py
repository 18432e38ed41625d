"""The alignment between words that blanks part."""

import pytest

from dragoman.data.builtin import generate_pairs
from dragoman.data.builtin.generator import AlignedPair
from dragoman.data.builtin.meaning.word_alignment import link_spaced_words


def test_clitics_and_punctuation_join_their_neighbours():
    pair = AlignedPair(
        source="Où est l’homme ?",
        target="Where is the man?",
        source_words=("Où", "est", "l’", "homme", "?"),
        target_words=("Where", "is", "the", "man", "?"),
        alignment=((0, 0), (1, 1), (2, 2), (3, 3), (4, 4)),
    )
    assert link_spaced_words(pair) == {(0, 0), (1, 1), (2, 2), (2, 3), (3, 3)}


@pytest.mark.parametrize("languages", ["fr-en", "en-es"])
def test_every_true_link_is_kept_between_the_parts_that_hold_its_words(languages):
    """Seen from the other end: the spelling of each part is that of the words in it."""
    for pair in generate_pairs(languages, split="valid", count=60, seed=3):
        links = link_spaced_words(pair)
        source, target = pair.source.split(" "), pair.target.split(" ")
        for one, other in pair.alignment:
            words = pair.source_words[one], pair.target_words[other]
            assert any(
                words[0] in source[left] and words[1] in target[right] for left, right in links
            )
        assert len(links) <= len(pair.alignment)
        assert max(left for left, _ in links) < len(source)
        assert max(right for _, right in links) < len(target)
