"""The store: ids are those of the text, nothing is done twice, nothing is half done."""

import json
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dragoman.data import corpus, workers
from dragoman.data.batches import make_batch
from dragoman.data.corpus import CorpusFiles
from dragoman.data.options import CorpusOptions
from dragoman.data.store import clean_text, encoding, store
from dragoman.data.store.checked_files import check_store
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.store import open_store, store_ids
from dragoman.errors import DataError, FolderError, OptionError
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


def forbid(monkeypatch, module, name):
    def fail(*_, **__):
        raise AssertionError(f"{name} was called")

    monkeypatch.setattr(module, name, fail)


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


# Reports and filters


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


# Done before, or done again


def test_nothing_is_done_twice(built, corpus_files, vocabularies, monkeypatch):
    folder, text, found = built
    before = times_of(folder)
    forbid(monkeypatch, clean_text, "clean_blocks")
    forbid(monkeypatch, store, "_write_ids")
    again = store_text(folder, corpus_files, None, OPTIONS)
    assert again == text
    reread = store_ids(again, vocabularies, 256)
    assert times_of(folder) == before
    assert reread.report == found.report
    assert pairs_of(reread.train) == pairs_of(found.train)


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
    forbid(monkeypatch, clean_text, "clean_blocks")
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
    assert str(caught.value) == (
        f"{folder}: the prepared corpus is missing or incomplete; have it prepared again by "
        f"“dragoman train” with --store {folder}"
    )


# Interruptions and what is in the way


def test_an_interrupted_encoding_is_done_again(tmp_path, corpus_files, vocabularies, monkeypatch):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    write_ids = store._write_ids

    def interrupted(text, part, *rest):
        if part == "valid.source":
            raise KeyboardInterrupt
        write_ids(text, part, *rest)

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


@pytest.mark.parametrize("damage", ["", "{", '{"key": 3}'])
@pytest.mark.parametrize("name", ["text.json", "ids.json"])
def test_damaged_facts_are_made_again(built, corpus_files, vocabularies, name, damage):
    folder, _, found = built
    expected = pairs_of(found.train)
    (folder / name).write_text(damage)
    again = store_ids(store_text(folder, corpus_files, None, OPTIONS), vocabularies, 256)
    assert pairs_of(again.train) == expected


TEXT_FILES = [
    f"train.{side}.{kind}" for side in ("source", "target") for kind in ("text", "text-ends")
]
ID_FILES = [name.replace("text", "ids") for name in TEXT_FILES] + ["train.index", "valid.index"]


@pytest.mark.parametrize("name", [*ID_FILES, *TEXT_FILES])
def test_a_store_cut_in_half_is_not_opened(built, name):
    folder, _, _ = built
    path = folder / name
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 16 * 8])
    with pytest.raises(FolderError, match=rf"{re.escape(str(path))}: is damaged \(it has .* bytes"):
        open_store(folder)
    path.unlink()
    with pytest.raises(FolderError, match=rf"{re.escape(str(path))}: is damaged \(it is missing\)"):
        open_store(folder)


def spoil(path):
    """Change one bit in the middle of a file."""
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 4
    path.write_bytes(raw)


@pytest.mark.parametrize("name", ID_FILES)
def test_changed_ids_are_noticed_when_they_are_read(built, name):
    folder, _, _ = built
    spoil(folder / name)

    def read():
        for part in (found := open_store(folder)).train, found.valid:
            part.ids(np.arange(len(part)))

    with pytest.raises(FolderError, match=rf"{name}: is damaged \(block 1 of 1 is not what"):
        read()


@pytest.mark.parametrize("name", ["train.source.text", "train.target.text-ends"])
def test_changed_text_is_noticed_when_it_is_read(built, corpus_files, other_vocabularies, name):
    folder, _, _ = built
    spoil(folder / name)
    text = store_text(folder, corpus_files, None, OPTIONS)
    message = (
        rf"{name}: is damaged .* or remove {re.escape(str(folder))} and have it prepared again"
    )
    with pytest.raises(FolderError, match=message):
        open_store(folder).train.text(0)
    with pytest.raises(FolderError, match=message):
        list(text.lines())
    with pytest.raises(FolderError, match=message):
        store_ids(text, other_vocabularies, 256)


def test_text_cut_in_half_is_not_used_again(built, corpus_files):
    folder, _, _ = built
    path = folder / "train.source.text"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(FolderError, match=r"train\.source\.text: is damaged \(it has 100 bytes"):
        store_text(folder, corpus_files, None, OPTIONS)


def test_a_store_without_digests_is_opened(built):
    """As an older version left it."""
    folder, _, found = built
    for name in ("text.json", "ids.json"):
        facts = json.loads((folder / name).read_text())
        del facts["files"], facts["digest"]
        (folder / name).write_text(json.dumps(facts))
    assert pairs_of(open_store(folder).train) == pairs_of(found.train)
    assert all("has no digests" in line for line in check_store(folder))


def test_a_damaged_shared_store_is_not_emptied(built, corpus_files):
    folder, _, _ = built
    (folder / "text.json").write_text("{")
    with pytest.raises(FolderError, match=r"text\.json: is damaged; remove .* prepared again"):
        store_text(folder, corpus_files, None, OPTIONS, may_replace=False)
    assert (folder / "ids.json").exists()


def test_no_pair_is_short_enough(tmp_path, corpus_files, vocabularies):
    text = store_text(tmp_path / "store", corpus_files, None, OPTIONS)
    with pytest.raises(DataError) as caught:
        store_ids(text, vocabularies, 1)
    message = str(caught.value)
    assert message.startswith("no pair is short enough to use: 0 of 80 pairs kept; dropped: ")
    assert message.endswith("longer than 1 subwords; raise --max-length")


# Several corpora


@pytest.fixture
def two_corpora(tmp_path, sentence_pairs):
    """The second repeats some pairs of the first, which has no use for them there."""
    write_tsv(tmp_path / "one.tsv", sentence_pairs[:50])
    write_tsv(tmp_path / "two.tsv", sentence_pairs[40:])
    return CorpusFiles(tsv=(tmp_path / "one.tsv", tmp_path / "two.tsv"))


@pytest.fixture
def prepared(tmp_path, two_corpora, vocabularies):
    def prepare(mix=None, max_length=256, temperature=None):
        options = replace(OPTIONS, mix=mix, mix_temperature=temperature)
        text = store_text(tmp_path / "store", two_corpora, None, options)
        mixed = {"mix": mix, "mix_temperature": temperature}
        return store_ids(text, vocabularies, max_length, **mixed)

    return prepare


@pytest.mark.parametrize("max_length", [256, 20])
def test_pairs_are_seen_by_the_weight_of_their_corpus(prepared, sentence_pairs, max_length):
    train = prepared((3.0, 0.5), max_length).train
    assert 0 < len(train) < 80
    seen = Counter(train.text(int(row)) for row in train.epoch_order(1, 1))
    first = set(sentence_pairs[:50])
    assert {count for pair, count in seen.items() if pair in first} == {3}
    others = [pair for pair in pairs_of(train) if pair not in first]
    assert {count for pair, count in seen.items() if pair not in first} == {1}
    assert sum(pair not in first for pair in seen) == round(len(others) / 2)
    assert train.epoch_order(1, 1).tolist() != train.epoch_order(1, 2).tolist()


def test_without_a_mix_every_pair_is_seen_once(prepared):
    plain = prepared().train
    assert sorted(plain.epoch_order(1, 3)) == list(range(len(plain)))
    even = prepared((1.0, 1.0)).train
    assert even.epoch_order(1, 3).tolist() == plain.epoch_order(1, 3).tolist()


def test_another_mix_prepares_nothing_again(prepared, tmp_path):
    prepared()
    before = times_of(tmp_path / "store")
    assert len(prepared((1.0, 2.0)).train.epoch_order(1, 1)) > 80
    assert times_of(tmp_path / "store") == before
    opened = open_store(tmp_path / "store", (0.0, 1.0)).train
    assert opened.epoch_order(1, 1).min() >= opened.group_ends[0] > 0


def test_a_temperature_weighs_by_the_sizes_and_prepares_nothing_again(prepared, tmp_path):
    plain = prepared().train
    before = times_of(tmp_path / "store")
    tempered = prepared(temperature=1000.0).train
    assert times_of(tmp_path / "store") == before
    order = tempered.epoch_order(1, 1)
    assert abs(len(order) - len(plain)) <= 1
    # So hot that both corpora have the same share.
    assert abs((order < plain.group_ends[0]).mean() - 0.5) < 0.02
    opened = open_store(tmp_path / "store", None, 1000.0).train
    assert opened.epoch_order(1, 1).tolist() == order.tolist()


def test_pairs_are_the_same_in_every_pass(prepared):
    train = prepared().train
    assert train.for_epoch(1, 3) is train.without_dropout is train
    assert train.longest == max(*train.source_lengths, *train.target_lengths)


def test_a_mix_needs_a_weight_for_each_corpus(prepared):
    with pytest.raises(OptionError) as caught:
        prepared((1.0, 2.0, 3.0))
    assert str(caught.value) == (
        "mix: 3 weights for 2 corpora; give one for each source file with its target file, then "
        "one for each TSV or TMX file"
    )


def test_a_mix_must_leave_something(prepared):
    with pytest.raises(OptionError) as caught:
        prepared((0.0, 1e-4))
    counts = np.diff(prepared().train.group_ends, prepend=0).tolist()
    assert str(caught.value) == (
        f"mix is 0 0.0001: of corpora of {counts} pairs, a pass would see none; raise the weights"
    )


@pytest.mark.parametrize("num_workers", [1, 2])
def test_any_number_of_workers_writes_the_same(
    tmp_path, corpus_files, vocabularies, built, num_workers, monkeypatch
):
    monkeypatch.setattr(encoding, "ENCODED_LINES", 10)
    monkeypatch.setattr(corpus, "RAW_LINES", 10)
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 1)
    monkeypatch.setattr(clean_text, "CHUNK_PAIRS", 7)
    monkeypatch.setattr(store, "CHUNK_PAIRS", 7)
    folder = tmp_path / "again"
    text = store_text(folder, corpus_files, None, OPTIONS, num_workers=num_workers)
    store_ids(text, vocabularies, 256, num_workers=num_workers)
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in built[0].iterdir())
    for name in names:
        assert (folder / name).read_bytes() == (built[0] / name).read_bytes()


def test_a_killed_worker_leaves_nothing_half_done(
    tmp_path, corpus_files, vocabularies, built, monkeypatch
):
    monkeypatch.setattr(encoding, "ENCODED_LINES", 10)
    monkeypatch.setattr(workers, "INLINE_BLOCKS", 1)
    call = workers._call

    def call_killed(process, block):
        process.kill()
        return call(process, block)

    monkeypatch.setattr(workers, "_call", call_killed)
    folder = tmp_path / "again"
    text = store_text(folder, corpus_files, None, OPTIONS)
    with pytest.raises(DataError) as caught:
        store_ids(text, vocabularies, 256, num_workers=2)
    assert str(caught.value) == (
        "a worker process ended before its work (status -9); free some memory and try again"
    )
    with pytest.raises(FolderError):
        open_store(folder)
    monkeypatch.undo()
    again = store_ids(text, vocabularies, 256)
    assert pairs_of(again.train) == pairs_of(built[2].train)
    rows = np.arange(len(again.train))
    for found, expected in zip(again.train.ids(rows), built[2].train.ids(rows), strict=True):
        assert found.ids.tolist() == expected.ids.tolist()
