from pathlib import Path

import pytest

from dragoman.data.builtin import write_corpus
from dragoman.errors import OptionError
from dragoman.paper.training_runs.corpora import (
    DataOptions,
    hash_contents,
    make_digest,
    name_texts,
    prepare_corpus,
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder / "texts", languages="fr-en", count=60, held_out=5, seed=1)
    return prepare_corpus(name_texts(folder / "texts"), folder, 400, lambda _: None)


def test_six_files_or_none():
    with pytest.raises(OptionError, match="--valid-target is missing: give all six files"):
        DataOptions(source="a", target="b", valid_source="c")


@pytest.mark.parametrize("name", ["sentences", "held_out"])
def test_the_built_in_corpus_has_pairs(name):
    with pytest.raises(OptionError, match=f"--{name.replace('_', '-')} is 0: give ≥ 1"):
        DataOptions(**{name: 0})


def test_the_built_in_corpus_is_made_once_and_named_files_are_taken(tmp_path):
    options = DataOptions(sentences=20, held_out=3)
    texts = options.find(tmp_path)
    before = texts.source.stat().st_mtime_ns
    assert options.find(tmp_path) == texts
    assert texts.source.stat().st_mtime_ns == before
    assert len(texts.source.read_text().splitlines()) == 20
    assert len(texts.test_reference.read_text().splitlines()) == 3
    named = DataOptions(**{name: f"some.{name}" for name in vars(texts)})
    assert named.find(tmp_path).valid_target == Path("some.valid_target")


def test_a_corpus_is_prepared_once_and_may_take_the_subwords_of_another(corpus, tmp_path):
    folder = corpus.store.parent.parent
    again = prepare_corpus(corpus.texts, folder, 400, lambda _: None)
    assert again == corpus
    other = prepare_corpus(corpus.texts, tmp_path, None, str, subwords=corpus.subwords)
    assert other.subwords.read_bytes() == corpus.subwords.read_bytes()
    assert (other.key, other.vocabulary_size) == (corpus.key, corpus.vocabulary_size)
    assert corpus.vocabulary_size == 400
    assert prepare_corpus(corpus.texts, tmp_path, 380, str).vocabulary_size == 380


def test_a_corpus_knows_its_pairs_and_tokens(corpus):
    from dragoman.text.subwords import Subwords

    subwords = Subwords.from_file(corpus.subwords)
    sides = [path.read_text().splitlines() for path in (corpus.texts.source, corpus.texts.target)]
    assert corpus.num_pairs == len(sides[0]) == 60
    lengths = [len(ids) + 1 for side in sides for ids in subwords.encode(side)]
    assert corpus.num_tokens == sum(lengths)


def test_a_title_names_the_corpus():
    files = {name: f"data/{name}.en" for name in ("source", "target", "valid_source",
             "valid_target", "test_source", "test_reference")}  # fmt: skip
    assert DataOptions(**files).title == "source.en"
    assert DataOptions().title == "the built-in French–English corpus"


def test_digests_tell_things_apart(tmp_path):
    assert make_digest(1, "a", ("b",)) == make_digest(1, "a", ("b",))
    assert len({make_digest(1), make_digest("1"), make_digest(1, 1), make_digest((1, 1))}) == 4
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_text("a\n")
    two.write_text("b\n")
    assert hash_contents([one]) != hash_contents([two])
    before = hash_contents([one, two])
    one.write_text("c\n")
    assert hash_contents([one, two]) != before
