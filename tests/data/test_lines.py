"""Lines from files in equal blocks, from a pipe as they come."""

import io
import os
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import lines
from dragoman.data.lines import BLOCK_LINES, blocks_of, lines_of_stdin
from dragoman.errors import DataError


@given(st.integers(0, 3 * BLOCK_LINES))
def test_blocks_join_to_the_whole(count):
    blocks = list(blocks_of(map(str, range(count))))
    assert [line for block in blocks for line in block] == [str(each) for each in range(count)]
    assert all(len(block) == BLOCK_LINES for block in blocks[:-1])
    assert all(0 < len(block) <= BLOCK_LINES for block in blocks)


def test_blocks_are_read_one_at_a_time():
    read = []

    def make():
        for number in range(3 * BLOCK_LINES):
            read.append(number)
            yield str(number)

    next(blocks_of(make()))
    assert len(read) == BLOCK_LINES


def pretend_stdin(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "", "two"]),
        ("Bäume\n".encode() * 5000, ["Bäume"] * 5000),
    ],
)
def test_standard_input_is_read_whole(monkeypatch, raw, expected):
    pretend_stdin(monkeypatch, raw)
    blocks = list(lines_of_stdin())
    assert [line for block in blocks for line in block] == expected
    assert all(0 < len(block) <= BLOCK_LINES for block in blocks)


def test_nobody_waits_for_lines_not_yet_written(monkeypatch):
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as read_end, os.fdopen(writer, "wb", buffering=0) as write_end:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(read_end))
        blocks = lines_of_stdin()
        write_end.write(b"one\n")
        assert next(blocks) == ["one"]
        write_end.write(b"two\nthree\n")
        time.sleep(0.1)
        assert next(blocks)[0] == "two"
        write_end.close()
        assert all(block == ["three"] for block in blocks)


def test_not_utf_8(monkeypatch):
    pretend_stdin(monkeypatch, b"one\n" + "zwölf\n".encode("latin-1"))
    with pytest.raises(DataError) as caught:
        list(lines_of_stdin())
    assert str(caught.value) == (
        "standard input, line 2: not UTF-8 (byte 0xf6 at column 3); convert it, for example "
        "with iconv"
    )


def test_block_size_is_what_the_reader_uses(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_LINES", 2)
    assert list(blocks_of(iter("abcde"))) == [["a", "b"], ["c", "d"], ["e"]]
