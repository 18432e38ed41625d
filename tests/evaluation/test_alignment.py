"""The alignment error rate against its definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.evaluation.alignment import alignment_error_rate

links = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(st.lists(st.tuples(links, links), min_size=1))
def test_is_one_minus_the_f_measure(pairs):
    """Where all links are sure, AER = 1 − F₁ of precision and recall."""
    tagged = [
        {(number, *link) for number, pair in enumerate(pairs) for link in pair[side]}
        for side in (0, 1)
    ]
    found, true = tagged
    expected = 0.0
    if found or true:
        precision = len(found & true) / len(found) if found else 0.0
        recall = len(found & true) / len(true) if true else 0.0
        both = precision + recall
        expected = 1 - (2 * precision * recall / both if both else 0.0)
    assert alignment_error_rate(pairs) == pytest.approx(expected)


def test_extremes():
    assert alignment_error_rate([({(0, 0)}, {(0, 0)})]) == 0
    assert alignment_error_rate([({(0, 1)}, {(0, 0)})]) == 1
    assert alignment_error_rate([]) == 0
