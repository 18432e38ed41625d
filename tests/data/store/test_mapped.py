"""Numbers and facts on the disk: mapped, sliced, gathered."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.store.mapped import gather, mapped, read_facts, slice_of, write_facts

rows = st.lists(st.lists(st.integers(0, 9), max_size=4), min_size=1, max_size=8)


def flat(lists):
    ends = np.cumsum([len(each) for each in lists])
    return np.array([number for each in lists for number in each], dtype=np.uint32), ends


@given(rows)
def test_slices_are_the_lines(lists):
    values, ends = flat(lists)
    assert [slice_of(values, ends, line).tolist() for line in range(len(lists))] == lists


@given(lists=rows, data=st.data())
def test_gathered_lines_are_the_slices_in_that_order(lists, data):
    values, ends = flat(lists)
    lines = data.draw(st.lists(st.integers(0, len(lists) - 1), min_size=1, max_size=10))
    found = gather(values, ends, np.array(lines))
    assert found.lengths.tolist() == [len(lists[line]) for line in lines]
    assert found.ids.tolist() == [number for line in lines for number in lists[line]]


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.uint32])
def test_a_file_is_mapped_as_it_was_written(tmp_path, kind):
    numbers = np.array([1, 2, 250], dtype=kind)
    numbers.tofile(tmp_path / "numbers")
    found = mapped(tmp_path / "numbers", kind)
    assert found.dtype == kind
    assert found.tolist() == [1, 2, 250]


def test_an_empty_file_has_no_numbers(tmp_path):
    (tmp_path / "numbers").touch()
    assert mapped(tmp_path / "numbers").tolist() == []


def test_facts_come_back(tmp_path):
    write_facts(tmp_path / "facts.json", {"key": "ä", "count": 3})
    assert read_facts(tmp_path / "facts.json") == {"key": "ä", "count": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["facts.json"]
    written = json.loads((tmp_path / "facts.json").read_bytes())
    assert written.pop("digest")
    assert written == {"key": "ä", "count": 3}


def test_facts_with_another_number_are_damaged(tmp_path):
    write_facts(tmp_path / "facts.json", {"count": 3})
    raw = (tmp_path / "facts.json").read_text()
    (tmp_path / "facts.json").write_text(raw.replace(": 3", ": 7"))
    assert read_facts(tmp_path / "facts.json") == {}


def test_facts_of_an_older_version_have_no_digest(tmp_path):
    (tmp_path / "facts.json").write_text('{"count": 3}')
    assert read_facts(tmp_path / "facts.json") == {"count": 3}


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[1]"])
def test_damaged_facts_are_none(tmp_path, raw):
    (tmp_path / "facts.json").write_bytes(raw)
    assert read_facts(tmp_path / "facts.json") == {}
    assert read_facts(tmp_path / "missing.json") == {}
