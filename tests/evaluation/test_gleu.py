"""GLEU against its definition, and the laws that follow from it."""

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.evaluation.gleu import count_grams, sentence_gleu

sentences = st.lists(st.integers(3, 6), max_size=9)
rows_of_pairs = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=5)


def grams(tokens):
    return Counter(
        tuple(tokens[first : first + size])
        for size in (1, 2, 3, 4)
        for first in range(len(tokens) - size + 1)
    )


def literal_gleu(hypothesis, reference):
    """The smaller of precision and recall of all n-grams, word for word as it is defined."""
    mine, theirs = grams(hypothesis), grams(reference)
    if not mine and not theirs:
        return 1.0
    if not mine or not theirs:
        return 0.0
    right = (mine & theirs).total()
    return min(right / mine.total(), right / theirs.total())


def pad(rows, garbage):
    """Lay rows beside one another; what comes after them may be anything."""
    width = max(map(len, rows)) + 1
    return (
        torch.tensor([[*row, *[garbage] * (width - len(row))] for row in rows]),
        torch.tensor([len(row) for row in rows]),
    )


@given(pairs=rows_of_pairs, garbage=st.integers(0, 6))
def test_equals_the_definition(pairs, garbage):
    hypotheses, references = zip(*pairs, strict=True)
    found = sentence_gleu(*pad(hypotheses, garbage), *pad(references, garbage))
    expected = [literal_gleu(*pair) for pair in pairs]
    assert found.tolist() == pytest.approx(expected, abs=1e-6)


@given(pairs=rows_of_pairs)
def test_is_symmetric_and_one_only_for_what_is_equal(pairs):
    hypotheses, references = zip(*pairs, strict=True)
    found = sentence_gleu(*pad(hypotheses, 2), *pad(references, 2))
    swapped = sentence_gleu(*pad(references, 2), *pad(hypotheses, 2))
    torch.testing.assert_close(found, swapped)
    assert sentence_gleu(*pad(hypotheses, 2), *pad(hypotheses, 2)).eq(1).all()
    for score, (hypothesis, reference) in zip(found.tolist(), pairs, strict=True):
        assert 0 <= score <= 1
        if sorted(hypothesis) != sorted(reference):
            assert score < 1


def test_grams_are_counted():
    assert count_grams(torch.tensor([0, 1, 2, 4, 10])).tolist() == [0, 1, 3, 10, 34]


def test_narrow_tensors_have_no_long_grams():
    one, two = torch.tensor([[3]]), torch.tensor([[3, 4]])
    found = sentence_gleu(one, torch.tensor([1]), two, torch.tensor([2]))
    assert found.tolist() == pytest.approx([1 / 3])
