"""The store: what goes in comes out, nothing leaks into validation, nothing is half done."""

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

from dragoman.data import clean_text, store
from dragoman.data.batches import make_batch
from dragoman.data.clean_text import store_text
from dragoman.data.corpus import CorpusFiles
from dragoman.data.options import CorpusOptions
from dragoman.data.store import open_store, store_ids
from dragoman.errors import DataError, FolderError
from dragoman.text.normalise import normalise
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import Vocabularies

OPTIONS = CorpusOptions(valid_pairs=5)


def write_tsv(path, pairs):
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
    return CorpusFiles(tsv=(path,))


def pairs_of(part):
    return [part.text(index) for index in range(len(part))]


def times_of(folder):
    return {path.name: path.stat().st_mtime_ns for path in sorted(folder.iterdir())}


def forbid(monkeypatch, name):
    def fail(*_, **__):
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(store, name, fail)


@pytest.fixture
def built(tmp_path, corpus_files, vocabularies):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    return tmp_path / "store", text, store_ids(text, vocabularies, 256)


# What goes in comes out


def test_pairs_come_back(built, sentence_pairs):
    _, _, found = built
    every = pairs_of(found.train) + pairs_of(found.valid)
    assert sorted(every) == sorted(set(sentence_pairs))
    assert len(found.valid) == 5
    # Training pairs keep the order of the files.
    order = [sentence_pairs.index(pair) for pair in pairs_of(found.train)]
    assert order == sorted(order)


def test_ids_decode_to_the_text(built, vocabularies):
    _, _, found = built
    for part in (found.train, found.valid):
        rows = np.arange(len(part))[::-1]
        flat_sides = part.ids(rows)
        lengths = (part.source_lengths, part.target_lengths)
        for side, (flat, subwords) in enumerate(zip(flat_sides, vocabularies, strict=True)):
            assert flat.lengths.tolist() == lengths[side][rows].tolist()
            parts = np.split(flat.ids, np.cumsum(flat.lengths)[:-1])
            for row, ids in zip(rows, parts, strict=True):
                text = part.text(int(row))[side]
                assert ids.tolist() == [*subwords.encode([text])[0], subwords.eos_id]
                assert subwords.decode([ids.tolist()]) == [text]
    assert found.train.num_tokens == sum(
        len(ids) + 1
        for pair in pairs_of(found.train)
        for ids in vocabularies.source.encode(list(pair))
    )


def test_ids_make_a_batch(built, vocabularies):
    _, _, found = built
    batch = make_batch(*found.train.ids(np.array([3, 0, 7])), vocabularies.pad_id)
    assert batch.source.lengths.tolist() == found.train.source_lengths[[3, 0, 7]].tolist()
    assert batch.source.ids.max() < len(vocabularies.source)


def test_lines_alternate_between_the_sides(built):
    _, text, found = built
    pairs = pairs_of(found.train)
    assert list(text.lines()) == [sentence for pair in pairs for sentence in pair]
    assert list(text.lines(["target"])) == [target for _, target in pairs]
    assert text.num_pairs == len(pairs)


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


# Reports and filters


def test_repetitions_are_dropped_and_counted(tmp_path):
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("b", "a"), ("a", "b"), ("", "x")]
    files = write_tsv(tmp_path / "pairs.tsv", pairs)
    valid = write_tsv(tmp_path / "valid.tsv", [("v", "w"), ("v", "w")])
    text = store_text(tmp_path / "store", files, valid, CorpusOptions())
    assert list(text.lines(["target"])) == ["b", "c", "a"]
    assert text.report.dropped == {"with an empty side": 1, "repeated": 2}
    kept = store_text(tmp_path / "other", files, valid, CorpusOptions(deduplicate=False))
    assert list(kept.lines(["target"])) == ["b", "c", "b", "a", "b"]


def test_report_accounts_for_every_pair(built, sentence_pairs):
    _, text, found = built
    report = found.report
    assert report.read == len(sentence_pairs)
    assert report.kept == len(found.train) == text.num_pairs
    assert report.dropped["set aside for validation"] == 5


def test_long_pairs_are_dropped_and_counted(tmp_path, vocabularies, corpus_files):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    whole = store_ids(text, vocabularies, 256)
    limit = int(np.median(whole.train.source_lengths))
    short = store_ids(text, vocabularies, limit)
    longest = [part.source_lengths.max() for part in (short.train, short.valid)]
    assert max(longest) <= limit + 1
    assert short.train.target_lengths.max() <= limit + 1
    sides = np.maximum(whole.train.source_lengths, whole.train.target_lengths)
    assert len(short.train) == (sides <= limit + 1).sum() < len(whole.train)
    assert short.report.dropped[f"longer than {limit} subwords"] == len(whole.train) - len(
        short.train
    )
    assert short.report.kept == len(short.train)


def test_validation_files_are_taken_whole(tmp_path, vocabularies, corpus_files, sentence_pairs):
    pairs = [("one", "un"), ("one", "un"), ("x", "y" * 90), ("", "nothing")]
    valid = write_tsv(tmp_path / "valid.tsv", pairs)
    text = store_text(tmp_path / "store", corpus_files, valid, OPTIONS)
    found = store_ids(text, vocabularies, 256)
    assert pairs_of(found.valid) == pairs[:3]
    assert len(found.train) == len(set(sentence_pairs))


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


def read_side_by_side(folder, name):
    sides = []
    for side in ("source", "target"):
        raw = (folder / f"{name}.{side}.text").read_bytes()
        ends = np.fromfile(folder / f"{name}.{side}.text-ends", dtype=np.int64)
        starts = [0, *ends[:-1]]
        sides.append([raw[start:end].decode() for start, end in zip(starts, ends, strict=True)])
    return list(zip(*sides, strict=True))


# Done before, or done again


def test_nothing_is_done_twice(built, corpus_files, vocabularies, monkeypatch):
    folder, text, found = built
    before = times_of(folder)
    for name in ("clean_pairs", "_write_text", "_write_ids", "_make_empty"):
        forbid(monkeypatch, name)
    again = store_text(folder, corpus_files, None, OPTIONS)
    assert again == text
    reread = store_ids(again, vocabularies, 256)
    assert times_of(folder) == before
    assert reread.report == found.report
    assert pairs_of(reread.train) == pairs_of(found.train)


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
def test_other_options_are_seen(built, corpus_files, changes):
    folder, text, _ = built
    other = store_text(folder, corpus_files, None, replace(OPTIONS, **changes))
    assert other.key != text.key
    assert not (folder / "ids.json").exists()


def test_validation_files_are_seen(built, tmp_path, corpus_files):
    folder, text, _ = built
    valid = write_tsv(tmp_path / "valid.tsv", [("one", "un")])
    assert store_text(folder, corpus_files, valid, OPTIONS).key != text.key


@pytest.fixture
def other_vocabularies(sentence_pairs):
    model = train_subwords([pair[0] for pair in sentence_pairs], vocabulary_size=330)
    other = Subwords.from_bytes(model)
    return Vocabularies(other, other)


def test_other_subwords_are_seen(built, corpus_files, other_vocabularies, monkeypatch):
    folder, _, found = built
    first = np.array([0])
    old_ids = found.train.ids(first)[1].ids.tolist()
    before = times_of(folder)
    forbid(monkeypatch, "clean_pairs")
    text = store_text(folder, corpus_files, None, OPTIONS)
    again = store_ids(text, other_vocabularies, 256)
    new_ids = again.train.ids(first)[1].ids.tolist()
    assert new_ids != old_ids
    assert other_vocabularies.target.decode([new_ids]) == [again.train.text(0)[1]]
    after = times_of(folder)
    texts = [name for name in before if ".text" in name]
    assert len(texts) == 8
    assert all(after[name] == before[name] for name in texts)


def test_a_store_in_use_is_not_changed_by_another_run(
    built, corpus_files, vocabularies, other_vocabularies
):
    """A run that trains from a store must not see what a second run writes there."""
    folder, text, found = built
    rows = np.arange(len(found.train))
    before = [flat.ids.tolist() for flat in found.train.ids(rows)]
    store_ids(text, other_vocabularies, 256)
    assert [flat.ids.tolist() for flat in found.train.ids(rows)] == before
    store_text(folder, corpus_files, None, replace(OPTIONS, valid_pairs=6))
    assert [flat.ids.tolist() for flat in found.train.ids(rows)] == before


def test_a_prepared_store_is_opened(built):
    folder, _, found = built
    opened = open_store(folder)
    assert opened.report == found.report
    assert pairs_of(opened.train) == pairs_of(found.train)
    assert pairs_of(opened.valid) == pairs_of(found.valid)


@pytest.mark.parametrize("name", ["text.json", "ids.json"])
def test_an_incomplete_store_is_not_opened(built, name):
    folder, _, _ = built
    (folder / name).unlink()
    with pytest.raises(FolderError) as caught:
        open_store(folder)
    assert str(caught.value) == f"{folder}: the prepared corpus is missing or incomplete"


# Interruptions and what is in the way


def test_an_interrupted_reading_is_done_again(tmp_path, corpus_files, vocabularies, monkeypatch):
    folder = tmp_path / "store"
    clean_pairs = store.clean_pairs

    def interrupted(*arguments):
        for number, pair in enumerate(clean_pairs(*arguments)):
            if number == 20:
                raise KeyboardInterrupt
            yield pair

    monkeypatch.setattr(clean_text, "clean_pairs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store_text(folder, corpus_files, None, OPTIONS)
    monkeypatch.undo()
    assert (folder / "train.source.text").exists()
    text = store_text(folder, corpus_files, None, OPTIONS)
    fresh = store_text(tmp_path / "fresh", corpus_files, None, OPTIONS)
    assert list(text.lines()) == list(fresh.lines())
    assert text.report == fresh.report


def test_an_interrupted_encoding_is_done_again(tmp_path, corpus_files, vocabularies, monkeypatch):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    write_ids = store._write_ids

    def interrupted(folder, name, side, *rest):
        if (name, side) == ("valid", "source"):
            raise KeyboardInterrupt
        write_ids(folder, name, side, *rest)

    monkeypatch.setattr(store, "_write_ids", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store_ids(text, vocabularies, 256)
    monkeypatch.undo()
    again = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    found = store_ids(again, vocabularies, 256)
    other = store_text(tmp_path / "fresh", corpus_files, None, OPTIONS)
    fresh = store_ids(other, vocabularies, 256)
    rows = np.arange(len(fresh.train))
    for side in (0, 1):
        np.testing.assert_array_equal(
            found.train.ids(rows)[side].ids, fresh.train.ids(rows)[side].ids
        )


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


@pytest.mark.parametrize("damage", ["", "{", '{"key": 3}'])
@pytest.mark.parametrize("name", ["text.json", "ids.json"])
def test_damaged_facts_are_made_again(built, corpus_files, vocabularies, name, damage):
    folder, _, found = built
    expected = pairs_of(found.train)
    (folder / name).write_text(damage)
    again = store_ids(store_text(folder, corpus_files, None, OPTIONS), vocabularies, 256)
    assert pairs_of(again.train) == expected


def test_a_foreign_folder_is_refused_and_left_alone(tmp_path, corpus_files):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "thesis.tex").write_text("precious")
    with pytest.raises(FolderError) as caught:
        store_text(folder, corpus_files, None, OPTIONS)
    assert str(caught.value) == f"{folder}: is not a store of prepared text; name another folder"
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


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


def test_no_pair_is_short_enough(tmp_path, corpus_files, vocabularies):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    with pytest.raises(DataError) as caught:
        store_ids(text, vocabularies, 1)
    message = str(caught.value)
    assert message.startswith("no pair is short enough to use: 0 of 80 pairs kept; dropped: ")
    assert message.endswith("longer than 1 subwords; raise --max-length")
