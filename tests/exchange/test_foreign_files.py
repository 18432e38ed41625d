"""Small files of other tools: bounded, ordinary, and of plain values."""

import os

import pytest

from dragoman.errors import FolderError
from dragoman.exchange.foreign_files import read_object


def test_plain_values_and_words_for_others(tmp_path):
    (tmp_path / "file").write_text('{"a": 1, "b": [[1]], "c": {"d": 2}, "e": null, "f": "x"}')
    assert read_object(tmp_path / "file") == {
        "a": 1, "b": "a list", "c": "an object", "e": None, "f": "x"
    }  # fmt: skip


@pytest.mark.parametrize("contents", [b"[]", b"{", b"[" * 50_000, b"\xff", b"", b"9" * 5000])
def test_other_contents(tmp_path, contents):
    (tmp_path / "file").write_bytes(contents)
    with pytest.raises(FolderError, match=f"{tmp_path}/file: (is not JSON|holds no object); get"):
        read_object(tmp_path / "file")


def test_what_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FolderError, match="pipe: is a folder, pipe or device"):
        read_object(tmp_path / "pipe")
    (tmp_path / "large").touch()
    os.truncate(tmp_path / "large", 1 << 40)
    with pytest.raises(FolderError, match="large: has over 1,048,576 bytes"):
        read_object(tmp_path / "large")
