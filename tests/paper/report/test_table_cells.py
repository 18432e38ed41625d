"""Cells as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.paper.report.table_cells import number, show


@pytest.mark.parametrize(
    ("cell", "form", "text"),
    [
        (None, "", ""),
        ("words", ".2f", "words"),
        (True, ".2f", "yes"),
        (False, "", "no"),
        (63_045_632, "", "63,045,632"),
        (0.123456, "", "0.1235"),
        (-1.5, ".1f", "−1.5"),
        (2.3e19, ".1e", "2.3·10¹⁹"),
        (2.2664e-251, ".4e", "2.2664·10⁻²⁵¹"),
        (0.0, ".4e", "0"),
        (0.321, ".0%", "32%"),
    ],
)
def test_what_is_shown(cell, form, text):
    assert show(cell, form) == text


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_powers_of_ten_can_be_read_back(value):
    back = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
    mantissa, exponent = show(value, ".12e").split("·10")
    assert float(f"{mantissa}e{exponent.translate(back)}") == pytest.approx(value, rel=1e-11)


def test_only_numbers_are_numbers():
    assert number(3) == 3.0
    with pytest.raises(AssertionError, match="is no number"):
        number(None)
