"""The subwords of a pair of languages: written, read, told apart."""

import pytest
import sentencepiece

from dragoman.errors import FolderError
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import JOINT_FILE, SIDE_FILES, Vocabularies


@pytest.fixture(scope="module")
def other():
    return Subwords.from_bytes(train_subwords(["eins zwei drei"] * 30, vocabulary_size=330))


def put(folder, vocabularies):
    for name, contents in vocabularies.files().items():
        (folder / name).write_bytes(contents)


def test_joint_subwords_are_one_file(tmp_path, vocabularies):
    assert list(vocabularies.files()) == [JOINT_FILE]
    put(tmp_path, vocabularies)
    read = Vocabularies.read(tmp_path)
    assert read.is_joint
    assert read.source is read.target
    assert read.files() == vocabularies.files()
    assert read.content_hash() == vocabularies.content_hash()


def test_separate_subwords_are_two_files(tmp_path, subwords, other):
    pair = Vocabularies(subwords, other)
    assert not pair.is_joint
    assert tuple(pair.files()) == SIDE_FILES
    put(tmp_path, pair)
    read = Vocabularies.read(tmp_path)
    assert [len(each) for each in read] == [len(subwords), len(other)]
    assert read.source.to_bytes() == subwords.to_bytes()
    assert read.target.to_bytes() == other.to_bytes()


def test_special_symbols_are_those_of_the_models(subwords, other):
    pair = Vocabularies(subwords, other)
    assert (pair.pad_id, pair.eos_id) == (subwords.pad_id, subwords.eos_id)


def test_hash_tells_models_and_sides_apart(subwords, other):
    hashes = {
        Vocabularies(*sides).content_hash()
        for sides in ((subwords, subwords), (other, other), (subwords, other), (other, subwords))
    }
    assert len(hashes) == 4


def test_nothing_to_read(tmp_path):
    with pytest.raises(FolderError) as caught:
        Vocabularies.read(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: has no subwords (subwords.model is missing)")


@pytest.mark.parametrize("changed", [{"pad_id": 2, "eos_id": 3}, {"pad_id": 3, "eos_id": 0}])
def test_special_symbols_must_agree(tmp_path, subwords, changed):
    free = [number for number in range(4) if number not in changed.values()]
    ids = changed | dict(zip(("unk_id", "bos_id"), free, strict=True))
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["one two three four"] * 30),
        model_prefix=str(tmp_path / "foreign"),
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=4,
        **ids,
    )
    foreign = Subwords.from_file(tmp_path / "foreign.model")
    with pytest.raises(FolderError) as caught:
        Vocabularies(subwords, foreign)
    name = "pad_id" if changed["pad_id"] != subwords.pad_id else "eos_id"
    assert str(caught.value) == (
        f"the two subword models have different {name}s ({getattr(subwords, name)} and "
        f"{changed[name]}); train both with the same special symbols"
    )
