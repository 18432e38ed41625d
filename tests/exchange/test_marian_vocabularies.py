"""Which vocabulary of a Marian model is taken, and how it cuts text."""

from pathlib import Path

import pytest

from dragoman.errors import FolderError, OptionError
from dragoman.exchange.marian_vocabularies import read_vocabularies
from dragoman.text.subwords import Subwords, train_subwords

WORDS = ["</s>", "<unk>", "a", "house", ".", "<pad>", "Bü", "'s", "</b>"]
SIZES = (len(WORDS), len(WORDS))


@pytest.fixture(scope="module")
def spm() -> bytes:
    text = ["The old dog sees a small house.", "A tree likes the garden."]
    return train_subwords(text, vocabulary_size=320)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.npz").write_bytes(b"")
    return tmp_path


def write_words(path: Path, words=WORDS) -> Path:
    text = "".join(f'"{word}": {place}\n' for place, word in enumerate(words))
    path.write_text(text, encoding="utf-8")
    return path


def read(folder, *given, sizes=SIZES):
    return read_vocabularies(folder / "model.npz", given, sizes)


def message_of(folder, *given, kind=FolderError, **said):
    with pytest.raises(kind) as caught:
        read(folder, *given, **said)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_words_are_cut_at_spaces_alone(folder):
    side, other = read(folder, write_words(folder / "words.yml"))
    assert side.names == ["</s>", "<unk>", "▁a", "▁house", "▁.", "<pad>?", "▁Bü", "▁'s", "▁</b>",
                          "<pad>"]  # fmt: skip
    assert other == side


def test_a_model_of_words_cuts_as_marian_does(folder):
    side, _ = read(folder, write_words(folder / "words.yml"))
    vocabulary = Subwords.from_bytes(side.model)
    ids = vocabulary.encode(["a  house  . unseen thing Bü </b> House"])[0]
    assert [WORDS[each] for each in ids] == [
        "a", "house", ".", "<unk>", "<unk>", "Bü", "</b>", "<unk>",
    ]  # fmt: skip
    assert vocabulary.decode([[2, 3, 4, 6]]) == ["a house . Bü"]


def test_words_beyond_those_of_the_model_are_unknown(folder):
    """Marian reads as many words as the model has."""
    side, _ = read(folder, write_words(folder / "words.yml"), sizes=(4, 4))
    assert side.names == ["</s>", "<unk>", "▁a", "▁house", "<pad>"]


def test_subwords_in_yaml_want_their_splitter(folder, spm):
    path = write_words(folder / "words.yml", ["</s>", "<unk>", "▁a", "b"])
    assert message_of(folder, path, sizes=(4, 4)) == (
        f"{path}: has subwords of SentencePiece, such as “▁a”; put the SentencePiece model that "
        f"cut the text at {folder / 'source.spm'}"
    )
    (folder / "source.spm").write_bytes(spm)
    (folder / "target.spm").write_bytes(spm)
    source, target = read(folder, path, sizes=(4, 4))
    assert source.names == target.names == ["</s>", "<unk>", "▁a", "b", "<pad>"]
    assert source.model == spm


def test_another_size_is_refused(folder, spm):
    path = folder / "joint.spm"
    path.write_bytes(spm)
    size = len(Subwords.from_bytes(spm))
    assert read(folder, path, sizes=(size, size))[0].model == spm
    assert message_of(folder, path, sizes=(size - 1, size - 1)) == (
        f"{path}: has {size} entries, but the model has words for {size - 1}; name the "
        "vocabulary that it was trained with by --vocabulary"
    )
    assert "has 9 entries, but the model has words for 1,200; name the vocabulary" in (
        message_of(folder, write_words(folder / "words.yml"), sizes=(1200, 1200))
    )


def test_other_kinds_are_refused(folder):
    path = folder / "vocab.fsv"
    path.write_text("_has_wb\n")
    assert message_of(folder, path) == (
        f"{path}: is a vocabulary of another kind than .spm, .yml and .json (such as factors), "
        "which is not supported here"
    )


def test_no_sentencepiece_model(folder):
    path = folder / "vocab.spm"
    path.write_bytes(b"nothing")
    assert message_of(folder) == (
        f"{path}: is not a SentencePiece model, or damaged; get the model again"
    )


def test_at_most_two(folder):
    path = write_words(folder / "words.yml")
    assert message_of(folder, path, path, path, kind=OptionError) == (
        "--vocabulary: give one for both sides, or that of each"
    )


def test_what_lies_beside_the_model(folder):
    assert message_of(folder) == (
        f"{folder}: has no vocabulary (*vocab*.yml, *vocab*.spm); name the right one with "
        "--vocabulary"
    )
    write_words(folder / "opus.vocab.yml")
    assert read(folder)[0].file == folder / "opus.vocab.yml"
    write_words(folder / "another.vocab.yml")
    assert message_of(folder) == (
        f"{folder}: has 2 vocabularies; name the right one with --vocabulary"
    )


@pytest.mark.parametrize(
    ("source", "target"),
    [("srcvocab.deen.yml", "trgvocab.deen.yml"), ("source.vocab.yml", "target.vocab.yml")],
)
def test_one_of_each_side_beside_the_model(folder, source, target):
    write_words(folder / source)
    write_words(folder / target, WORDS[:7])
    sides = read(folder, sizes=(9, 7))
    assert [each.file.name for each in sides] == [source, target]


@pytest.mark.parametrize("name", ["model.npz.decoder.yml", "decoder.yml"])
@pytest.mark.parametrize(
    "text",
    ["vocabs: [named.yml, named.yml]", "vocabs:\n  - named.yml\n  - named.yml",
     'vocabs:\n  - "/there/named.yml"\n  - "/there/named.yml"', "vocabs:\n  - D:\\x\\named.yml"],
)  # fmt: skip
def test_what_the_settings_name_is_taken(folder, name, text):
    write_words(folder / "named.yml")
    (folder / "vocab.spm").write_bytes(b"of another model")
    (folder / name).write_text(f"models:\n  - /there/model.npz\n{text}\n")
    assert [each.file for each in read(folder)] == [folder / "named.yml"] * 2


def test_settings_of_another_model_are_not_read(folder):
    write_words(folder / "opus.vocab.yml")
    (folder / "decoder.yml").write_text("models: [other.npz]\nvocabs: [none.yml, none.yml]\n")
    assert read(folder)[0].file == folder / "opus.vocab.yml"
    (folder / "model.npz.decoder.yml").write_text("beam-size: 6\n")
    assert read(folder)[0].file == folder / "opus.vocab.yml"


def test_a_named_vocabulary_that_is_not_there(folder):
    """No other is taken in its place, such as one that merely lies there."""
    write_words(folder / "vocab.yml")
    settings = folder / "model.npz.decoder.yml"
    settings.write_text("vocabs:\n  - /there/a.spm\n  - ..\n")
    assert message_of(folder) == (
        f"{settings}: names the vocabulary “a.spm”, which is not beside the model; put it there, "
        "or name it with --vocabulary"
    )
    assert read(folder, folder / "vocab.yml")[0].file == folder / "vocab.yml"


def test_two_of_one_name(folder):
    write_words(folder / "vocab.yml")
    settings = folder / "model.npz.decoder.yml"
    settings.write_text("vocabs:\n  - /de/vocab.yml\n  - /en/vocab.yml\n")
    assert message_of(folder) == (
        f"{settings}: names two vocabularies that are both called “vocab.yml”; name them with "
        "--vocabulary"
    )


def test_damaged_settings(folder):
    settings = folder / "model.npz.decoder.yml"
    settings.write_bytes(b"\xff\xfe")
    assert message_of(folder) == f"{settings}: is damaged; get it again"
