"""The subwords of a pair of languages: written, read, told apart."""

import pytest
import sentencepiece

from dragoman.errors import FolderError
from dragoman.text.dictionary import Dictionary
from dragoman.text.subwords import Subwords, train_subwords
from dragoman.text.vocabulary import (
    DICTIONARY_FILE,
    JOINT_FILE,
    JOINT_WORDS_FILE,
    SIDE_FILES,
    SIDE_WORDS_FILES,
    TextVocabulary,
    Vocabularies,
)
from dragoman.text.word_vocabulary import Words, learn_words


@pytest.fixture(scope="module")
def other():
    return Subwords.from_bytes(train_subwords(["eins zwei drei"] * 30, vocabulary_size=330))


@pytest.fixture(scope="module")
def words():
    return learn_words(["one two three two three three"])


@pytest.fixture(scope="module")
def other_words():
    return learn_words(["eins zwei zwei drei drei"])


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


def test_subwords_and_words_offer_the_same(subwords, words):
    for vocabulary in (subwords, words):
        assert isinstance(vocabulary, TextVocabulary)
        assert vocabulary.decode(vocabulary.encode(["two three"])) == ["two three"]


def test_only_words_are_closed(subwords, words, other_words):
    assert Vocabularies(words, other_words).is_closed
    assert not Vocabularies(subwords, subwords).is_closed


def test_joint_words_are_one_file(tmp_path, words):
    pair = Vocabularies(words, words)
    assert list(pair.files()) == [JOINT_WORDS_FILE]
    put(tmp_path, pair)
    read = Vocabularies.read(tmp_path)
    assert read.is_joint
    assert isinstance(read.source, Words)
    assert read.files() == pair.files()


def test_separate_words_are_two_files_and_a_dictionary(tmp_path, words, other_words):
    dictionary = Dictionary({"one": " eins"})
    pair = Vocabularies(words, other_words, dictionary)
    assert tuple(pair.files()) == (*SIDE_WORDS_FILES, DICTIONARY_FILE)
    put(tmp_path, pair)
    read = Vocabularies.read(tmp_path)
    assert read.files() == pair.files()
    assert read.source.to_bytes() == words.to_bytes()
    assert read.target.to_bytes() == other_words.to_bytes()
    assert read.dictionary == dictionary


def test_hash_depends_on_what_ids_depend_on(subwords, words, other_words):
    hashes = {
        Vocabularies(*sides).content_hash()
        for sides in ((words, words), (other_words, words), (words, other_words))
    }
    assert len(hashes) == 3
    assert Vocabularies(subwords, subwords).content_hash() not in hashes
    with_dictionary = Vocabularies(words, words, Dictionary({"one": " eins"}))
    assert with_dictionary.content_hash() == Vocabularies(words, words).content_hash()


def test_half_of_the_words_is_missing(tmp_path, words, other_words):
    put(tmp_path, Vocabularies(words, other_words))
    (tmp_path / SIDE_WORDS_FILES[1]).unlink()
    with pytest.raises(FolderError, match=f"{SIDE_WORDS_FILES[1]}: cannot be read"):
        Vocabularies.read(tmp_path)


def test_no_folder_to_read(tmp_path):
    with pytest.raises(FolderError, match="has no subwords"):
        Vocabularies.read(tmp_path / "none")
