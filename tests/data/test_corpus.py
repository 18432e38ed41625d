"""Reading pairs: every form of file, every fault of a file, and the report."""

import gzip
import lzma
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.corpus import (
    CorpusFiles,
    Report,
    clean_pairs,
    read_aligned,
    read_lines,
    read_pairs,
)
from dragoman.data.options import CorpusOptions
from dragoman.errors import DataError
from dragoman.text.normalise import normalise

LINES = ["Ein Hund.", "", "Zwei Bäume", "日本語 です", "end"]
PACKERS = {"": lambda raw: raw, ".gz": gzip.compress, ".xz": lzma.compress}


def write(path, lines, end="\n"):
    raw = "".join(line + end for line in lines).encode()
    path.write_bytes(PACKERS[path.suffix if path.suffix in PACKERS else ""](raw))
    return path


def message_of(action):
    with pytest.raises(DataError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


# Forms of files


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_reads_every_form(tmp_path, suffix, end):
    assert list(read_lines(write(tmp_path / f"text{suffix}", LINES, end))) == LINES


@pytest.mark.parametrize("suffix", PACKERS)
def test_byte_order_mark_is_no_text(tmp_path, suffix):
    path = write(tmp_path / f"text{suffix}", ["\ufeffone", "\ufefftwo"])
    assert list(read_lines(path)) == ["one", "\ufefftwo"]


def test_last_line_needs_no_end(tmp_path):
    (tmp_path / "text").write_bytes(b"one\ntwo")
    assert list(read_lines(tmp_path / "text")) == ["one", "two"]


def test_odd_separators_end_no_line(tmp_path):
    """What Unicode calls a line end would shift one file against the other."""
    lines = ["a\u2028b", "c\x0bd\x0ce\x1cf\x85g", "h\ri"]
    assert list(read_lines(write(tmp_path / "text", lines))) == lines


def test_empty_file_has_no_lines(tmp_path):
    assert list(read_lines(write(tmp_path / "text", []))) == []


def test_several_files_and_tsv(tmp_path):
    files = CorpusFiles(
        source=(write(tmp_path / "a.de", ["eins", "zwei"]), write(tmp_path / "b.de.gz", ["drei"])),
        target=(write(tmp_path / "a.en.xz", ["one", "two"]), write(tmp_path / "b.en", ["three"])),
        tsv=(
            write(tmp_path / "c.tsv", ["vier\tfour"]),
            write(tmp_path / "d.tsv.gz", ["fünf\tfive"]),
        ),
    )
    assert list(read_pairs(files)) == [
        ("eins", "one"), ("zwei", "two"), ("drei", "three"), ("vier", "four"), ("fünf", "five"),
    ]  # fmt: skip
    assert [path.name for path in files.all] == [
        "a.de", "b.de.gz", "a.en.xz", "b.en", "c.tsv", "d.tsv.gz",
    ]  # fmt: skip


# Faults of files


def test_missing_file(tmp_path):
    path = tmp_path / "nowhere.en"
    expected = f"{path}: cannot be read (No such file or directory); check the path"
    assert message_of(lambda: list(read_lines(path))) == expected
    files = CorpusFiles(source=(path,), target=(path,))
    assert message_of(files.content_hash) == expected
    assert message_of(lambda: list(read_pairs(files))) == expected


@pytest.mark.parametrize("suffix", PACKERS)
def test_folder_instead_of_a_file(tmp_path, suffix):
    path = tmp_path / f"folder{suffix}"
    path.mkdir()
    expected = f"{path}: is a folder; name the files in it"
    assert message_of(lambda: list(read_lines(path))) == expected


@pytest.mark.parametrize("suffix", PACKERS)
def test_not_utf_8(tmp_path, suffix):
    path = tmp_path / f"latin{suffix}"
    raw = b"one\ntwo\n" + "drei Bäume\n".encode("latin-1") + b"four\n"
    path.write_bytes(PACKERS[suffix](raw))
    assert message_of(lambda: list(read_lines(path))) == (
        f"{path}, line 3: not UTF-8 (byte 0xe4 at column 7); convert the file, for example "
        "with iconv"
    )


@pytest.mark.parametrize(("num_source", "num_target"), [(3, 5), (5, 3), (0, 2), (2, 0), (1200, 1)])
def test_unequal_line_counts(tmp_path, num_source, num_target):
    source = write(tmp_path / "text.de", ["a"] * num_source)
    target = write(tmp_path / "text.en", ["b"] * num_target)
    files = CorpusFiles(source=(source,), target=(target,))
    assert message_of(lambda: list(read_pairs(files))) == (
        f"unequal line counts: {source} has {num_source:,} lines, {target} has {num_target:,}; "
        "line n of one must translate line n of the other"
    )


@pytest.mark.parametrize(("line", "columns"), [("one", 1), ("a\tb\tc", 3), ("", 1)])
def test_wrong_columns(tmp_path, line, columns):
    path = write(tmp_path / "pairs.tsv", ["eins\tone", line])
    assert message_of(lambda: list(read_pairs(CorpusFiles(tsv=(path,))))) == (
        f"{path}, line 2: {columns} columns where there must be 2 (source, tab, target)"
    )


def test_unequal_numbers_of_files(tmp_path):
    path = write(tmp_path / "text", LINES)
    assert message_of(lambda: CorpusFiles(source=(path, path), target=(path,))) == (
        "2 source files but 1 target files; give as many of one as of the other, in the same order"
    )


def make_lines(count):
    generator = random.Random(0)
    return ["".join(generator.choices("abcdefgh ", k=40)) for _ in range(count)]


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_cut_short(tmp_path, suffix):
    path = write(tmp_path / f"text{suffix}", make_lines(3000))
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    message = message_of(lambda: list(read_lines(path)))
    assert message.startswith(f"{path}: damaged after line ")
    assert message.endswith("; get the file again")
    found, reader = [], read_lines(path)
    with pytest.raises(DataError, match="damaged"):
        found.extend(reader)
    assert f"damaged after line {len(found)} (" in message
    assert len(found) > 1000
    assert found == make_lines(3000)[: len(found)]


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_not_packed_at_all(tmp_path, suffix):
    path = tmp_path / f"text{suffix}"
    path.write_bytes(b"plain text\n" * 10)
    assert message_of(lambda: list(read_lines(path))).startswith(f"{path}: damaged after line 0 (")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
@pytest.mark.parametrize("place", [0.2, 0.5, 0.8])
def test_damaged_inside(tmp_path, suffix, place):
    path = write(tmp_path / f"text{suffix}", make_lines(3000))
    raw = bytearray(path.read_bytes())
    start = int(place * len(raw))
    raw[start : start + 40] = bytes(255 - byte for byte in raw[start : start + 40])
    path.write_bytes(raw)
    message = message_of(lambda: list(read_lines(path)))
    assert message.startswith((f"{path}: damaged after line ", f"{path}, line "))


# Cleaning


def clean(tmp_path, pairs, **options):
    path = write(tmp_path / "pairs.tsv", ["\t".join(pair) for pair in pairs])
    report = Report()
    ratio = CorpusOptions(**options).max_length_ratio
    found = list(clean_pairs(read_pairs(CorpusFiles(tsv=(path,))), ratio, report))
    return found, report


def test_report_counts_what_was_dropped(tmp_path):
    pairs = [("eins", "one"), ("", "two"), ("drei", "\u00a0"), ("vier", "four"), ("x", "y" * 100)]
    found, report = clean(tmp_path, pairs)
    assert found == [("eins", "one"), ("vier", "four")]
    assert (report.read, report.kept) == (5, 2)
    assert report.dropped == {"with an empty side": 2, "of too different lengths": 1}
    assert report.in_words() == (
        "2 of 5 pairs kept; dropped: 2 with an empty side, 1 of too different lengths"
    )


def test_report_without_losses():
    report = Report(read=1234)
    report.drop("for no reason", 0)
    assert report.in_words() == "1,234 of 1,234 pairs kept"


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=30)), max_size=8))
def test_clean_pairs_are_normalised_and_all_accounted_for(tmp_path_factory, pairs):
    encodable = [
        tuple(
            "".join(c for c in side if c not in "\t\n" and not "\ud800" <= c <= "\udfff")
            for side in pair
        )
        for pair in pairs
    ]
    found, report = clean(tmp_path_factory.mktemp("clean"), encodable)
    assert report.read == len(pairs)
    assert report.kept == len(found)
    for source, target in found:
        assert source == normalise(source) != ""
        assert target == normalise(target) != ""


@pytest.mark.parametrize(
    ("source", "target", "kept"), [(10, 50, True), (10, 51, False), (50, 10, True), (51, 10, False)]
)
def test_ratio_has_some_leeway(tmp_path, source, target, kept):
    found, _ = clean(tmp_path, [("a" * source, "b" * target)], max_length_ratio=4.0)
    assert bool(found) == kept


def test_ratio_may_be_off(tmp_path):
    found, report = clean(tmp_path, [("a", "b" * 5000)], max_length_ratio=None)
    assert len(found) == report.kept == 1


# Hashes and aligned files


def test_hash_tells_contents_order_and_roles_apart(tmp_path):
    one, other = write(tmp_path / "one", ["a"]), write(tmp_path / "other", ["b"])
    copied = write(tmp_path / "copied", ["a"])
    hashes = [
        files.content_hash()
        for files in (
            CorpusFiles(source=(one,), target=(other,)),
            CorpusFiles(source=(other,), target=(one,)),
            CorpusFiles(tsv=(one, other)),
            CorpusFiles(tsv=(other, one)),
            CorpusFiles(tsv=(one,)),
        )
    ]
    assert len(set(hashes)) == len(hashes)
    same = CorpusFiles(source=(copied,), target=(other,)).content_hash()
    assert same == hashes[0]


def test_aligned_files(tmp_path):
    one, other = write(tmp_path / "one", ["a", "b"]), write(tmp_path / "other", ["c", "d"])
    assert read_aligned([one, other], ["source", "reference"]) == [["a", "b"], ["c", "d"]]


def test_aligned_files_of_unequal_length(tmp_path):
    one, other = write(tmp_path / "one", ["a", "b"]), write(tmp_path / "other", ["c"])
    assert message_of(lambda: read_aligned([one, other], ["source", "reference"])) == (
        f"unequal line counts (source {one}: 2 lines, reference {other}: 1 lines); "
        "the files must be parallel"
    )


def test_aligned_files_without_lines(tmp_path):
    one = write(tmp_path / "one", [])
    assert message_of(lambda: read_aligned([one, one], ["source", "reference"])) == (
        f"{one}: empty; there is nothing to score"
    )


def test_general_files_and_memories_are_corpora_of_their_own(tmp_path):
    table = write(tmp_path / "a.tsv", ["eins\tone"])
    memory = tmp_path / "b.tmx"
    memory.write_text(
        '<tmx><body><tu><tuv xml:lang="de"><seg>zwei</seg></tuv><tuv xml:lang="en"><seg>two</seg>'
        "</tuv></tu></body></tmx>"
    )
    files = CorpusFiles(tsv=(table,), general=(table, memory), languages=("de", "en"))
    assert files.groups == ((table,), (table,), (memory,))
    assert (files.num_own, files.memories) == (1, {memory})
    assert list(read_pairs(files)) == [("eins", "one"), ("eins", "one"), ("zwei", "two")]


def test_what_a_file_is_for_and_its_languages_change_the_hash(tmp_path):
    path = write(tmp_path / "a.tmx", ["<tmx/>"])
    languages = ("de", "en")
    known = [
        CorpusFiles(tsv=(path,)), CorpusFiles(tmx=(path,), languages=languages),
        CorpusFiles(general=(path,), languages=languages),
        CorpusFiles(tmx=(path,), languages=("en", "de")),
    ]  # fmt: skip
    assert len({each.content_hash() for each in known}) == len(known)
    # Languages mean nothing where no file has several, and the hash stays that of stores before.
    assert CorpusFiles(tsv=(path,), languages=languages).content_hash() == known[0].content_hash()
