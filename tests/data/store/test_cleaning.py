"""Cleaning in blocks: what a plain loop over the pairs gives, whatever the number of workers."""

import hashlib

import numpy as np
import pytest

from dragoman.data import corpus, workers
from dragoman.data.corpus import CorpusFiles, Report, clean_pairs, read_pairs
from dragoman.data.options import CorpusOptions
from dragoman.data.store.cleaning import clean_blocks
from dragoman.errors import DataError


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(corpus, "RAW_LINES", 20)
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 1)


def write(path, lines):
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def make_files(folder):
    """Two files side by side and one of both, with everything that is dropped or changed."""
    sources = [f"Satz  {number}\u00ad".encode() for number in range(150)]
    targets = [f"sentence {number} e\u0301".encode() for number in range(150)]
    targets[7], targets[149] = b"", b"x" * 200
    both = [b"%d\ta\xc2\xa0b %d\r" % (number, number) for number in range(70)]
    both[3] = b"\t3"
    return CorpusFiles(
        source=(write(folder / "a.de", sources),),
        target=(write(folder / "a.en", targets),),
        tsv=(write(folder / "b.tsv", both),),
    )


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize("ratio", [4.0, None])
def test_blocks_hold_what_a_loop_finds(tmp_path, num_workers, ratio):
    files = make_files(tmp_path)
    options = CorpusOptions(max_length_ratio=ratio)
    blocks = list(clean_blocks(files, options, num_workers=num_workers))
    assert len(blocks) == 8 + 4
    report = Report()
    expected = list(clean_pairs(read_pairs(files), ratio, report))
    total = Report()
    for block in blocks:
        total.add(block.report)
    assert total == report
    for side in (0, 1):
        sentences = [pair[side].encode() for pair in expected]
        assert b"".join(block.texts[side] for block in blocks) == b"".join(sentences)
        lengths = np.concatenate([block.lengths[side] for block in blocks])
        assert lengths.tolist() == [len(sentence) for sentence in sentences]
        hashes = np.concatenate([block.hashes for block in blocks])[:, side]
        assert hashes.tobytes() == b"".join(
            hashlib.blake2b(sentence, digest_size=8).digest() for sentence in sentences
        )
    assert [block.group for block in blocks] == [0] * 8 + [1] * 4


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"a\tb\xe4", "line 66: not UTF-8 (byte 0xe4 at column 4); convert the file, for example "
         "with iconv"),
        (b"a b", "line 66: 1 columns where there must be 2 (source, tab, target)"),
    ],
)  # fmt: skip
def test_a_faulty_line_is_named(tmp_path, num_workers, line, message):
    lines = [b"one\ttwo"] * 130
    lines[65] = line
    path = write(tmp_path / "pairs ä.tsv", lines)
    blocks = clean_blocks(CorpusFiles(tsv=(path,)), CorpusOptions(), num_workers=num_workers)
    with pytest.raises(DataError) as caught:
        list(blocks)
    assert str(caught.value) == f"{path}, {message}"


@pytest.mark.parametrize("num_workers", [1, 2])
def test_unequal_files_are_refused(tmp_path, num_workers):
    source = write(tmp_path / "a.de", [b"a"] * 125)
    target = write(tmp_path / "a.en", [b"b"] * 90)
    files = CorpusFiles(source=(source,), target=(target,))
    with pytest.raises(DataError) as caught:
        list(clean_blocks(files, CorpusOptions(), num_workers=num_workers))
    assert str(caught.value) == (
        f"unequal line counts: {source} has 125 lines, {target} has 90; line n of one must "
        "translate line n of the other"
    )
