"""Clean text: what goes in comes out, nothing leaks into validation, nothing is half done."""

import contextlib
import os
import random
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.data import corpus
from dragoman.data.corpus import CorpusFiles
from dragoman.data.options import CorpusOptions
from dragoman.data.store import clean_text
from dragoman.data.store.clean_text import store_text
from dragoman.errors import DataError, FolderError
from dragoman.text.normalise import normalise

OPTIONS = CorpusOptions(valid_pairs=5)


def write_tsv(path, pairs):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return CorpusFiles(tsv=(path,))


def read_side_by_side(folder, name):
    sides = []
    for side in ("source", "target"):
        raw = (folder / f"{name}.{side}.text").read_bytes()
        ends = np.fromfile(folder / f"{name}.{side}.text-ends", dtype=np.int64)
        starts = [0, *ends[:-1]]
        sides.append([raw[start:end].decode() for start, end in zip(starts, ends, strict=True)])
    return list(zip(*sides, strict=True))


@pytest.fixture
def stored(tmp_path, corpus_files):
    return store_text(tmp_path / "store", corpus_files, None, OPTIONS)


# What goes in comes out


def test_lines_alternate_between_the_sides(stored, sentence_pairs):
    lines = list(stored.lines())
    pairs = list(zip(lines[::2], lines[1::2], strict=True))
    assert list(stored.lines(["target"])) == [target for _, target in pairs]
    assert stored.num_pairs == len(pairs)
    # Training pairs keep the order of the files.
    order = [sentence_pairs.index(pair) for pair in pairs]
    assert order == sorted(order)


@settings(max_examples=15)
@given(
    st.lists(
        st.tuples(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12)),
        min_size=1,
        max_size=30,
    )
)
def test_any_text_comes_back_normalised(pairs):
    clean = [
        tuple(
            "".join(c for c in side if c not in "\t\n\r" and not "\ud800" <= c <= "\udfff")
            for side in pair
        )
        for pair in pairs
    ]
    normal = [tuple(map(normalise, pair)) for pair in clean]
    expected = list(dict.fromkeys(pair for pair in normal if all(pair)))
    with tempfile.TemporaryDirectory() as scratch:
        files = write_tsv(Path(scratch) / "pairs.tsv", clean)
        valid = write_tsv(Path(scratch) / "valid.tsv", [("a", "b")])
        options = CorpusOptions(max_length_ratio=None)
        if not expected:
            with pytest.raises(DataError):
                store_text(Path(scratch) / "store", files, valid, options)
            return
        text = store_text(Path(scratch) / "store", files, valid, options)
        assert list(text.lines()) == [sentence for pair in expected for sentence in pair]
        assert text.report.kept == text.num_pairs == len(expected)


def test_repetitions_are_dropped_and_counted(tmp_path):
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("b", "a"), ("a", "b"), ("", "x")]
    files = write_tsv(tmp_path / "pairs.tsv", pairs)
    valid = write_tsv(tmp_path / "valid.tsv", [("v", "w"), ("v", "w")])
    text = store_text(tmp_path / "store", files, valid, CorpusOptions())
    assert list(text.lines(["target"])) == ["b", "c", "a"]
    assert text.report.dropped == {"with an empty side": 1, "repeated": 2}
    kept = store_text(tmp_path / "other", files, valid, CorpusOptions(deduplicate=False))
    assert list(kept.lines(["target"])) == ["b", "c", "b", "a", "b"]


def test_a_sample_is_drawn_from_the_whole_text(tmp_path, monkeypatch):
    monkeypatch.setattr(clean_text, "CHUNK_PAIRS", 64)
    files = write_tsv(tmp_path / "pairs.tsv", [(f"s{n}", f"t{n}") for n in range(2000)])
    valid = write_tsv(tmp_path / "valid.tsv", [("v", "w")])
    text = store_text(tmp_path / "store", files, valid, OPTIONS)
    sample = list(text.lines(max_pairs=400))
    assert sample == list(text.lines(max_pairs=400))
    numbers = [int(line[1:]) for line in sample[::2]]
    assert sample[1::2] == [f"t{number}" for number in numbers]
    assert len(set(numbers)) == 400
    assert numbers == sorted(numbers)
    for start in range(0, 2000, 500):
        assert 60 < sum(start <= number < start + 500 for number in numbers) < 140
    assert list(text.lines(max_pairs=2000)) == list(text.lines())


# Validation set aside


words = st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h"])
repetitive = st.lists(
    st.tuples(
        st.lists(words, min_size=1, max_size=3).map(" ".join),
        st.lists(words, min_size=1, max_size=3).map(" ".join),
    ),
    min_size=10,
    max_size=150,
)


@settings(max_examples=25)
@given(pairs=repetitive, deduplicate=st.booleans(), seed=st.integers(0, 99))
def test_validation_shares_no_sentence_with_training(pairs, deduplicate, seed):
    options = CorpusOptions(valid_pairs=4, deduplicate=deduplicate)
    shuffled = random.Random(seed).sample(pairs, len(pairs))
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for name, order in (("one", pairs), ("again", pairs), ("shuffled", shuffled)):
            folder = Path(scratch) / name
            files = write_tsv(Path(scratch) / f"{name}.tsv", order)
            try:
                text = store_text(folder, files, None, options)
            except DataError as error:
                results.append(str(error))
                continue
            lines = list(text.lines())
            train = list(zip(lines[::2], lines[1::2], strict=True))
            valid = read_side_by_side(folder, "valid")
            for side in (0, 1):
                assert not {pair[side] for pair in train} & {pair[side] for pair in valid}
            assert set(train) | set(valid) <= set(pairs)
            assert text.report.kept == len(train) > 0
            assert text.report.dropped["set aside for validation"] == len(valid) <= 4
            results.append((sorted(train), sorted(valid)))
    assert results[0] == results[1] == results[2]


# Done before, or done again


def test_nothing_is_done_twice(stored, corpus_files, monkeypatch):
    def fail(*_, **__):
        raise AssertionError("the corpus was read again")

    for name in ("clean_blocks", "_write_text", "_make_empty"):
        monkeypatch.setattr(clean_text, name, fail)
    assert store_text(stored.folder, corpus_files, None, OPTIONS) == stored


def test_other_contents_are_seen(tmp_path, sentence_pairs):
    path = tmp_path / "pairs.tsv"
    folder = tmp_path / "store"
    first = store_text(folder, write_tsv(path, sentence_pairs), None, OPTIONS)
    times = path.stat()
    changed = [*sentence_pairs[:-1], (sentence_pairs[-1][0], sentence_pairs[-1][1].swapcase())]
    second_files = write_tsv(path, changed)
    # The same size and time: only the contents tell.
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    second = store_text(folder, second_files, None, OPTIONS)
    assert first.key != second.key
    valid = read_side_by_side(folder, "valid")
    lines = list(second.lines())
    assert set(zip(lines[::2], lines[1::2], strict=True)) | set(valid) == set(changed)


@pytest.mark.parametrize(
    "changes",
    [
        {"valid_pairs": 6},
        {"deduplicate": False},
        {"max_length_ratio": 2.0},
        {"max_length_ratio": None},
    ],
)
def test_other_options_are_seen(stored, corpus_files, changes):
    (stored.folder / "ids.json").write_text("{}")
    other = store_text(stored.folder, corpus_files, None, replace(OPTIONS, **changes))
    assert other.key != stored.key
    assert not (stored.folder / "ids.json").exists()


def test_validation_files_are_seen(stored, tmp_path, corpus_files):
    valid = write_tsv(tmp_path / "valid.tsv", [("one", "un")])
    assert store_text(stored.folder, corpus_files, valid, OPTIONS).key != stored.key


# Interruptions and what is in the way


def test_an_interrupted_reading_is_done_again(tmp_path, corpus_files, monkeypatch):
    folder = tmp_path / "store"
    clean_blocks = clean_text.clean_blocks

    def interrupted(*arguments, **options):
        for number, block in enumerate(clean_blocks(*arguments, **options)):
            if number == 2:
                raise KeyboardInterrupt
            yield block

    monkeypatch.setattr(corpus, "RAW_LINES", 10)
    monkeypatch.setattr(clean_text, "clean_blocks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store_text(folder, corpus_files, None, OPTIONS)
    monkeypatch.undo()
    assert (folder / "train.source.text").exists()
    text = store_text(folder, corpus_files, None, OPTIONS)
    fresh = store_text(tmp_path / "fresh", corpus_files, None, OPTIONS)
    assert list(text.lines()) == list(fresh.lines())
    assert text.report == fresh.report


def test_an_interrupted_emptying_is_done_again(tmp_path, corpus_files, monkeypatch):
    """However many files were removed by then, the rest is still known as a store."""
    folder = tmp_path / "store"
    unlink = os.unlink
    for num_removed in range(1, 20):
        store_text(folder, corpus_files, None, OPTIONS)
        left = [num_removed]

        def remove(*arguments, left=left, **options):
            if not left[0]:
                raise KeyboardInterrupt
            left[0] -= 1
            unlink(*arguments, **options)

        monkeypatch.setattr(os, "unlink", remove)
        with contextlib.suppress(KeyboardInterrupt):
            store_text(folder, corpus_files, None, replace(OPTIONS, valid_pairs=6))
        monkeypatch.undo()


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path, corpus_files):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError) as caught:
        store_text(folder, corpus_files, None, OPTIONS)
    assert str(caught.value) == f"{folder}: is not a store of prepared text; name another folder"
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


def test_a_folder_with_what_a_kill_left_is_taken(tmp_path, corpus_files):
    """The kill came while the first file was being written."""
    folder = tmp_path / "store"
    folder.mkdir()
    (folder / ".store.json.77.new").write_text("{")
    (folder / ".lock").touch()
    assert store_text(folder, corpus_files, None, OPTIONS).num_pairs


def test_an_empty_folder_is_taken(tmp_path, corpus_files):
    (tmp_path / "store").mkdir()
    assert store_text(tmp_path / "store", corpus_files, None, OPTIONS).num_pairs


# Corpora that are not enough


def test_empty_corpus(tmp_path):
    files = write_tsv(tmp_path / "pairs.tsv", [("", "x")])
    with pytest.raises(DataError) as caught:
        store_text(tmp_path / "store", files, None, OPTIONS)
    assert str(caught.value) == (
        "the corpus is empty: 0 of 1 pairs kept; dropped: 1 with an empty side "
        f"({tmp_path / 'pairs.tsv'})"
    )


def test_empty_validation_corpus(tmp_path, corpus_files):
    valid = write_tsv(tmp_path / "valid.tsv", [])
    with pytest.raises(DataError) as caught:
        store_text(tmp_path / "store", corpus_files, valid, OPTIONS)
    assert str(caught.value) == f"the validation corpus is empty ({tmp_path / 'valid.tsv'})"


def test_too_few_to_set_any_aside(tmp_path):
    files = write_tsv(tmp_path / "pairs.tsv", [(f"s{n}", f"t{n}") for n in range(9)])
    with pytest.raises(DataError) as caught:
        store_text(tmp_path / "store", files, None, OPTIONS)
    assert str(caught.value) == (
        "9 pairs are too few to set any aside; give --valid-source and --valid-target, "
        "or at least 10 pairs"
    )


def test_every_pair_shares_a_sentence(tmp_path):
    files = write_tsv(tmp_path / "pairs.tsv", [("same", f"t{n}") for n in range(20)])
    with pytest.raises(DataError) as caught:
        store_text(tmp_path / "store", files, None, OPTIONS)
    assert str(caught.value) == (
        "every pair shares a sentence with the validation set; give other files"
    )


# General text


def test_general_text_is_trained_on_and_never_validated_on(tmp_path):
    own = write_tsv(tmp_path / "own.tsv", [(f"mein {n}", f"my {n}") for n in range(60)])
    general = [(f"alle {n}", f"all {n}") for n in range(500)] + [("mein 7", "another")]
    write_tsv(tmp_path / "general.tsv", general)
    files = replace(own, general=(tmp_path / "general.tsv",))
    store_text(tmp_path / "store", files, None, CorpusOptions(valid_pairs=60))
    valid = read_side_by_side(tmp_path / "store", "valid")
    assert len(valid) == 6
    assert all(source.startswith("mein") for source, _ in valid)
    few = write_tsv(tmp_path / "own.tsv", [(f"mein {n}", f"my {n}") for n in range(9)])
    with pytest.raises(DataError, match="9 pairs are too few to set any aside"):
        store_text(tmp_path / "few", replace(few, general=files.general), None, OPTIONS)


def test_general_sentences_that_are_validated_on_are_left_out(tmp_path):
    pairs = [(f"mein {n}", f"my {n}") for n in range(60)]
    own = write_tsv(tmp_path / "own.tsv", pairs)
    write_tsv(tmp_path / "general.tsv", [(source, f"other {target}") for source, target in pairs])
    files = replace(own, general=(tmp_path / "general.tsv",))
    text = store_text(tmp_path / "store", files, None, OPTIONS)
    valid = {source for source, _ in read_side_by_side(tmp_path / "store", "valid")}
    assert not valid & set(text.lines(["source"]))
    assert text.num_pairs == 2 * (60 - len(valid))
