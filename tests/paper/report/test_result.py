"""Tables, spreads and fitted exponents against their definitions."""

import csv
import io
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.paper.report.result import (
    Column,
    Experiment,
    Table,
    fit_exponent,
    number,
    show,
    spread,
)

TABLE = Table(
    name="t", title="T", columns=(Column("name"), Column("value", ".1f")),
    rows=(("a, “b”", 0.1), ("c\nd", None), ("", 1e-251)),
)  # fmt: skip


def test_csv_keeps_every_digit_and_every_letter():
    rows = list(csv.reader(io.StringIO(TABLE.as_csv())))
    assert rows[0] == ["name", "value"]
    assert [row[0] for row in rows[1:]] == ["a, “b”", "c\nd", ""]
    assert float(rows[1][1]) == 0.1
    assert rows[2][1] == ""
    assert float(rows[3][1]) == 1e-251


def test_columns():
    assert TABLE.column("name") == ["a, “b”", "c\nd", ""]
    assert TABLE.numbers("value") == [0.1, 1e-251]


def test_rows_must_fit_their_columns():
    with pytest.raises(ValueError, match="t: 1 cells, 2 columns"):
        Table(name="t", title="", columns=TABLE.columns, rows=(("a",),))


def test_an_experiment_finds_its_tables():
    experiment = Experiment(title="", claim="", findings=(), tables=(TABLE,))
    assert experiment.table("t") is TABLE


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_spread(values):
    mean, deviation = spread(values)
    assert mean == pytest.approx(statistics.mean(values), abs=1e-6)
    assert deviation == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_one_value_has_no_spread():
    assert spread([3.0]) == (3.0, None)


@given(st.floats(-3, 3), st.floats(0.01, 100))
def test_power_laws_are_fitted_exactly(exponent, factor):
    x = [64, 128, 256, 512]
    fitted = fit_exponent(x, [factor * each**exponent for each in x])
    assert fitted == pytest.approx(exponent, abs=1e-6)


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
