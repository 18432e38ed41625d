"""Lines from files in blocks that follow from the lines alone, from a pipe as they come."""

import gzip
import io
import os
import sys
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data import lines
from dragoman.data.lines import LINE_BYTES, LineReader, decode_line, open_lines
from dragoman.errors import DataError


def take_all(reader, num_lines=100):
    blocks = []
    while block := reader.take(num_lines):
        blocks.append(block)
    return blocks


def refuse(text):
    raise AssertionError(f"nothing to warn of, but: {text}")


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 20))
def test_blocks_join_to_the_whole_and_are_full(sizes, num_lines):
    raw = [b"x" * size + b"\n" for size in sizes]
    reader = LineReader(iter(raw), place="here")
    blocks = take_all(reader, num_lines)
    assert [line for block in blocks for line in block] == raw
    assert all(len(block) == num_lines for block in blocks[:-1])
    assert reader.num_taken == len(raw)


@given(st.lists(st.integers(0, 500), max_size=60))
def test_blocks_of_a_steady_reader_follow_from_the_lines(sizes):
    raw = [b"x" * size for size in sizes]
    before = lines.BLOCK_BYTES
    lines.BLOCK_BYTES = 1000
    try:
        first = take_all(LineReader(iter(raw), place="here"))
        slowly = ((time.sleep(1e-5), line)[1] for line in raw)
        assert take_all(LineReader(slowly, place="here")) == first
    finally:
        lines.BLOCK_BYTES = before
    assert [line for block in first for line in block] == raw
    for block in first:
        costs = [len(line) + LINE_BYTES for line in block]
        assert sum(costs[:-1]) < 1000
    for block in first[:-1]:
        assert sum(len(line) + LINE_BYTES for line in block) >= 1000


def test_reads_ahead_a_bounded_number_of_bytes(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 10_000)
    read = []

    def make():
        for number in range(100_000):
            read.append(number)
            yield b"x" * 36 + b"\n"

    reader = LineReader(make(), place="here")
    reader.take(1)
    time.sleep(0.2)
    assert 100 <= len(read) <= 103
    reader.take(50)
    time.sleep(0.2)
    assert 150 <= len(read) <= 153


def test_a_line_longer_than_a_block(monkeypatch):
    monkeypatch.setattr(lines, "BLOCK_BYTES", 100)
    raw = [b"a\n", b"b" * 5000 + b"\n", b"c\n"]
    blocks = take_all(LineReader(iter(raw), place="here"))
    assert [line for block in blocks for line in block] == raw


def pretend_stdin(monkeypatch, raw):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\n\r\ntwo", ["one", "", "two"]),
        ("a\x00b\x0bc\x85d\u2028e\rf\n".encode(), ["a\x00b\x0bc\x85d\u2028e\rf"]),
        ("Bäume\n".encode() * 5000, ["Bäume"] * 5000),
    ],
)
def test_standard_input_is_read_whole(monkeypatch, raw, expected):
    """Only the line feed separates lines."""
    pretend_stdin(monkeypatch, raw)
    reader = open_lines(None)
    taken = [line for block in take_all(reader) for line in block]
    assert b"".join(taken) == raw
    decoded = [decode_line(line, "here", n, refuse) for n, line in enumerate(taken)]
    assert decoded == expected


def test_nobody_waits_for_lines_not_yet_written(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as read_end, os.fdopen(writing, "wb", buffering=0) as write_end:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(read_end))
        reader = open_lines(None)
        assert not reader.is_steady
        write_end.write(b"one\n")
        assert reader.take(100) == [b"one\n"]
        write_end.write(b"two\nthree\n")
        time.sleep(0.1)
        assert reader.take(100) == [b"two\n", b"three\n"]
        write_end.write(b"four")
        write_end.close()
        assert reader.take(100) == [b"four"]
        assert reader.take(100) == []


def test_a_steady_reader_waits_for_a_full_block():
    go_on = threading.Event()

    def make():
        yield b"one\n"
        go_on.wait(10)
        yield b"two\n"

    reader = LineReader(make(), place="here")
    threading.Timer(0.1, go_on.set).start()
    assert reader.take(2) == [b"one\n", b"two\n"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_file_and_its_size(tmp_path, packed):
    raw = "eins\nzwei Bäume\n".encode()
    path = tmp_path / ("text.gz" if packed else "text")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    reader = open_lines(path)
    assert (reader.place, reader.is_steady) == (str(path), True)
    assert reader.num_bytes == (None if packed else len(raw))
    assert b"".join(reader.take(10)) == raw


def test_standard_input_from_a_file_is_steady(tmp_path, monkeypatch):
    (tmp_path / "text").write_bytes(b"one\ntwo\n")
    with (tmp_path / "text").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        reader = open_lines(None)
        assert (reader.is_steady, reader.num_bytes) == (True, 8)
        assert reader.take(10) == [b"one\n", b"two\n"]


def test_what_goes_wrong_is_told_after_the_lines_before(tmp_path):
    whole = gzip.compress(b"".join(b"%d\n" % number for number in range(100_000)))
    (tmp_path / "text.gz").write_bytes(whole[: len(whole) // 2])
    reader = open_lines(tmp_path / "text.gz")
    num_lines = 0

    def take_on():
        nonlocal num_lines
        while block := reader.take(1000):
            assert block[0] == b"%d\n" % num_lines
            num_lines += len(block)

    with pytest.raises(DataError, match=r"text.gz: damaged after line \d+ ") as caught:
        take_on()
    assert f"damaged after line {num_lines} " in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DataError, match="none: cannot be read"):
        open_lines(tmp_path / "none").take(1)


def test_a_stream_that_breaks():
    def make():
        yield b"one\n"
        raise OSError("gone")

    reader = LineReader(make(), place="standard input")
    assert reader.take(1) == [b"one\n"]
    with pytest.raises(DataError) as caught:
        reader.take(1)
    assert str(caught.value) == "standard input, after line 1: cannot be read (gone)"


def test_no_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError) as caught:
        open_lines(None)
    assert str(caught.value) == "standard input: is closed; give a file or a pipe"


@pytest.mark.parametrize(
    ("raw", "text", "column", "places"),
    [
        (b"zw\xf6lf\r\n", "zw�lf", 3, "1 place"),
        (b"\xff\xff!\n", "��!", 1, "2 places"),
        ("a�".encode() + b"\xe2\x82", "a��", 5, "1 place"),
    ],
)
def test_bytes_that_are_not_utf_8_are_replaced_and_named(raw, text, column, places):
    told = []
    assert decode_line(raw, "here", 7, told.append) == text
    bad = raw.rstrip(b"\r\n")[column - 1]
    assert told == [
        f"here, line 7: not UTF-8 (byte {bad:#04x} at column {column}); “�” was put in {places}"
    ]


@given(st.binary(max_size=60))
def test_every_line_can_be_decoded(raw):
    told = []
    text = decode_line(raw.replace(b"\n", b"") + b"\n", "here", 1, told.append)
    assert "\n" not in text
    plain = raw.replace(b"\n", b"").rstrip(b"\r")
    assert bool(told) == (plain.decode(errors="ignore").encode() != plain)
