"""Lines of code that are named beside the equations."""

import inspect

import pytest

from dragoman.insight.machine import code_lines
from dragoman.insight.machine.code_lines import PLACES, ROOT, find_code


@pytest.mark.parametrize("step", PLACES)
def test_line_is_where_it_is_said_to_be(step):
    found = find_code()[step]
    lines = (ROOT / found.file).read_text(encoding="utf-8").splitlines()
    assert PLACES[step][1] in lines[found.line - 1]
    shown = found.text.splitlines()
    assert (
        shown[found.line - found.first] == lines[found.line - 1].strip()
        or shown[found.line - found.first].strip() == lines[found.line - 1].strip()
    )
    assert len(shown) <= 2 * code_lines.AROUND + 1


def test_softmax_is_in_scaled_dot_product_attention():
    found = find_code()["softmax"]
    assert found.file == "models/attention/scaled_dot_product_attention.py"
    assert found.function == "attention_weights"


def test_without_sources_there_are_no_lines(monkeypatch):
    def refuse(_):
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsourcelines", refuse)
    find_code.cache_clear()
    try:
        assert find_code() == {}
    finally:
        find_code.cache_clear()
