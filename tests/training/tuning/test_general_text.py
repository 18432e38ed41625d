"""General text for fine-tuning: sampled always alike, and apart from what it is measured with."""

import random
from pathlib import Path

import pytest

from dragoman.data.corpus import CorpusFiles
from dragoman.errors import DataError
from dragoman.training.tuning import general_text
from dragoman.training.tuning.general_text import (
    TRAIN_FILE,
    collect_general,
    read_general,
    sample_files,
    split_pairs,
)

PAIRS = [(f"un {number}", f"one {number}") for number in range(300)]


def write(path, pairs):
    path.write_text("".join(f"{one}\t{two}\n" for one, two in pairs), encoding="utf-8")
    return CorpusFiles(general=(path,))


def test_a_sample_does_not_depend_on_the_order_and_has_nothing_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(general_text, "MOST_PAIRS", 100)
    monkeypatch.setattr(general_text, "MOST_VALID", 20)
    one = sample_files(write(tmp_path / "one.tsv", PAIRS))
    shuffled = random.Random(3).sample(PAIRS, len(PAIRS))
    assert sample_files(write(tmp_path / "other.tsv", shuffled)) == one
    assert (len(one.train), len(one.valid)) == (100, 20)
    assert set(one.train) < set(PAIRS) - set(one.valid)
    assert len(set(one.train)) == 100


def test_few_pairs_are_divided_and_fewer_refused(tmp_path):
    found = sample_files(write(tmp_path / "few.tsv", PAIRS[:10] * 3))
    assert (len(found.train), len(found.valid)) == (8, 2)
    with pytest.raises(DataError, match=r"9\.tsv: 9 of 9 pairs kept; general text needs 10 pairs"):
        sample_files(write(tmp_path / "9.tsv", PAIRS[:9]))


def test_no_sentence_is_in_both_parts():
    train = [("a", "x"), ("b", "y"), ("c", "z"), ("d", "w")]
    assert split_pairs(train, [("a", "1"), ("2", "z")]).train == [("b", "y"), ("d", "w")]


def test_the_text_of_the_run_is_remembered(tmp_path, whole, said):
    assert collect_general(CorpusFiles(), whole / "store", tmp_path / "general", said.append)
    store = general_text.open_store(whole / "store")
    valid = [store.valid.text(row) for row in range(len(store.valid))]
    assert read_general(tmp_path / "general") == valid
    lines = (tmp_path / "general" / TRAIN_FILE).read_text(encoding="utf-8").splitlines()
    train = {store.train.text(row) for row in range(len(store.train))}
    assert {tuple(line.split("\t")) for line in lines} == train
    assert said == []


def test_a_store_that_has_gone_is_told_and_done_without(tmp_path, said):
    assert not collect_general(CorpusFiles(), tmp_path / "gone", tmp_path / "general", said.append)
    assert len(said) == 1
    assert "tuning: the text that the model was trained on cannot be had" in said[0]
    assert not collect_general(CorpusFiles(), None, tmp_path / "general", said.append)
    assert not (tmp_path / "general").exists()
    assert read_general(Path("none")) == []
