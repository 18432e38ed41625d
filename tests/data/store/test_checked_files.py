"""Files with digests: every block is checked, once, when it is first read."""

import errno
import os

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from dragoman.data.options import CorpusOptions
from dragoman.data.store import checked_files
from dragoman.data.store.checked_files import (
    CheckedArray,
    check_store,
    check_vocabulary,
    written_checked,
)
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.mapped import gather, write_facts
from dragoman.data.store.store import store_ids
from dragoman.data.store.word_ids import store_words
from dragoman.errors import FolderError
from dragoman.files import digest_of

BLOCK = 64  # bytes, so eight numbers


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(checked_files, "BLOCK_BYTES", BLOCK)


def write(path, numbers, part=7):
    known = {}
    raw = np.asarray(numbers, np.int64).tobytes()
    with written_checked(path, known) as append:
        for first in range(0, len(raw), part):
            append(raw[first : first + part])
    return known


def spoil(path, place):
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize("part", [1, 7, 64, 1000])
@pytest.mark.parametrize("count", [0, 1, 8, 9, 40])
def test_digests_are_those_of_the_blocks(tmp_path, count, part):
    known = write(tmp_path / "numbers", range(count), part)
    raw = (tmp_path / "numbers").read_bytes()
    blocks = [raw[first : first + BLOCK] for first in range(0, len(raw), BLOCK)]
    assert known == {
        "numbers": {
            "bytes": 8 * count,
            "block_bytes": BLOCK,
            "digests": [xxhash.xxh3_128_hexdigest(each) for each in blocks],
        }
    }
    assert CheckedArray(tmp_path / "numbers", known)[:].tolist() == list(range(count))


def test_only_blocks_that_are_read_are_checked(tmp_path):
    path = tmp_path / "numbers"
    known = write(path, range(40))
    spoil(path, 3 * BLOCK)
    numbers = CheckedArray(path, known)
    assert numbers[8:24].tolist() == list(range(8, 24))
    with pytest.raises(FolderError, match=r"numbers: is damaged \(block 4 of 5 is not what was"):
        numbers[23:25]
    with pytest.raises(FolderError, match="block 4 of 5"):
        numbers[:]


@given(
    lengths=st.lists(st.integers(0, 20), min_size=1, max_size=20),
    place=st.integers(0, 399),
    data=st.data(),
)
def test_lines_are_checked_wherever_they_lie(tmp_path_factory, lengths, place, data):
    path = tmp_path_factory.mktemp("lines") / "numbers"
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    known = write(path, range(total))
    chosen = st.lists(st.integers(0, len(lengths) - 1), min_size=1, max_size=4)
    lines = np.array(data.draw(chosen))
    expected = gather(np.arange(total), ends, lines)
    found = CheckedArray(path, known).gather(ends, lines)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.lengths.tolist() == expected.lengths.tolist()
    if not total:
        return
    block = place % total // 8
    spoil(path, 8 * (place % total))
    numbers = CheckedArray(path, known)
    if any(number // 8 == block for number in expected.ids.tolist()):
        with pytest.raises(FolderError, match=f"block {block + 1} of"):
            numbers.gather(ends, lines)
    else:
        assert numbers.gather(ends, lines).ids.tolist() == expected.ids.tolist()


def test_a_block_is_checked_once(tmp_path, monkeypatch):
    known = write(tmp_path / "numbers", range(40))
    numbers = CheckedArray(tmp_path / "numbers", known)
    ends = np.arange(1, 41)
    calls = []
    plain = xxhash.xxh3_128_hexdigest
    monkeypatch.setattr(xxhash, "xxh3_128_hexdigest", lambda raw: calls.append(1) or plain(raw))
    for _ in range(3):
        numbers.gather(ends, np.array([0, 39, 9]))
    assert len(calls) == 3
    assert numbers[:].tolist() == list(range(40))
    assert len(calls) == 5


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def fail(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(FolderError) as caught:
        write(tmp_path / "numbers", range(3))
    assert str(caught.value) == (
        f"{tmp_path / 'numbers'}: cannot be written (No space left on device); free some space or "
        "choose another place, then try again"
    )


def test_an_old_file_stays_with_whoever_maps_it(tmp_path):
    known = write(tmp_path / "numbers", range(9))
    before = CheckedArray(tmp_path / "numbers", known)
    write(tmp_path / "numbers", range(100, 104))
    assert before[:].tolist() == list(range(9))


# A whole store


@pytest.fixture
def store(tmp_path, corpus_files, vocabularies):
    folder = tmp_path / "store"
    text = store_text(folder, corpus_files, None, CorpusOptions(valid_pairs=5))
    store_ids(text, vocabularies, 256)
    store_words(folder)
    (folder / "subwords-9-joint").mkdir()
    (folder / "subwords-9-joint" / "subwords.model").write_bytes(b"abc")
    write_facts(folder / "subwords-9-joint" / "digests.json", {"subwords.model": digest_of(b"abc")})
    return folder


def test_a_whole_store_has_nothing_to_complain_about(store):
    assert check_store(store) == []


def test_every_file_of_a_store_is_read_whole(store):
    names = [str(each.relative_to(store)) for each in sorted(store.rglob("*")) if each.is_file()]
    assert len(names) == 36
    for name in names:
        raw = (store / name).read_bytes()
        spoil(store / name, len(raw) // 2)
        (line,) = check_store(store)
        assert line.startswith(f"{store / name}: is damaged")
        (store / name).unlink()
        if name not in ("store.json", "words.json", "subwords-9-joint/digests.json"):
            (line,) = check_store(store)
            assert line.startswith(f"{store / name}: is ")
        (store / name).write_bytes(raw)
    assert check_store(store) == []


def test_a_damaged_vocabulary_is_named(store):
    folder = store / "subwords-9-joint"
    check_vocabulary(folder)
    (folder / "subwords.model").write_bytes(b"abd")
    with pytest.raises(FolderError, match=r"subwords\.model: is damaged; remove .*-joint, which"):
        check_vocabulary(folder)
