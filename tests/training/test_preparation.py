"""What is learnt from the text before a run: vocabularies of every kind, once."""

from dataclasses import replace

import pytest

from dragoman.data.corpus import CorpusFiles
from dragoman.data.options import CorpusOptions
from dragoman.data.store.clean_text import store_text
from dragoman.data.store.store import store_ids
from dragoman.errors import OptionError
from dragoman.models.options import TransformerOptions
from dragoman.text.options import TextOptions
from dragoman.text.subwords import Subwords
from dragoman.text.word_vocabulary import Words
from dragoman.training.configuration import RunOptions
from dragoman.training.preparation import RunRequest, describe_model, learn_subwords
from dragoman.training.run_setup import describe_run

WORDS = {"un": "one", "deux": "two", "trois": "three", "quatre": "four", "cinq": "five"}


@pytest.fixture(scope="module")
def text(tmp_path_factory, corpus):
    return store_text(tmp_path_factory.mktemp("store"), corpus, None, CorpusOptions(valid_pairs=20))


def options_of(**text):
    shape = TransformerOptions(tied_embeddings="target")
    return RunOptions(model=shape, text=TextOptions(**text))


def test_separate_words_and_their_dictionary(text, said):
    vocabularies = learn_subwords(text, options_of(units="words", joint=False), said.append)
    assert said == ["learning words", "learning a dictionary for unknown words"]
    for side, words in zip(vocabularies, (WORDS, WORDS.values()), strict=True):
        assert isinstance(side, Words)
        pieces = side.pieces(range(3, len(side)))
        assert sorted(pieces) == sorted(f"▁{word}" for word in words)
    translations = {source: f" {target}" for source, target in WORDS.items()}
    assert vocabularies.dictionary.translations == translations


def test_words_are_learnt_once(text, said):
    options = options_of(units="words", vocabulary_size=3)
    first = learn_subwords(text, options, said.append)
    assert said == ["learning 3 words", "learning a dictionary for unknown words"]
    again = learn_subwords(text, options, said.append)
    assert len(said) == 2
    assert again.files() == first.files()
    assert first.is_joint
    assert len(first.source) == 3 + 3
    larger = learn_subwords(text, options_of(units="words", vocabulary_size=4), said.append)
    assert len(larger.source) == 4 + 3


def test_characters(text, said):
    vocabularies = learn_subwords(text, options_of(units="characters"), said.append)
    assert said == ["learning characters"]
    assert isinstance(vocabularies.source, Subwords)
    assert vocabularies.dictionary is None
    letters = {letter for pair in WORDS.items() for word in pair for letter in word}
    pieces = vocabularies.source.pieces(range(259, len(vocabularies.source)))
    assert set(pieces) == letters | {"▁"}


def test_subwords_have_their_own_place(text, said):
    vocabularies = learn_subwords(text, options_of(vocabulary_size=330), said.append)
    assert said == ["learning 330 subwords"]
    assert not vocabularies.is_closed
    assert vocabularies.dictionary is None
    assert learn_subwords(text, options_of(vocabulary_size=330), said.append)
    assert len(said) == 1


@pytest.mark.parametrize(("units", "size"), [("words", 10 + 3), ("characters", 17 + 260)])
def test_a_dry_run_foresees_the_size(tmp_path, corpus, small, said, units, size):
    small["text"] = {"units": units}
    request = RunRequest(out=tmp_path / "run", files=corpus, preset="tiny", config=small)
    describe_run(request, said.append)
    (line,) = [line for line in said if line.startswith("parameters: ")]
    assert line.endswith(f" with {size} {units}")
    assert not (tmp_path / "run").exists()


def test_search_that_the_model_refuses_is_refused_before_training(tmp_path, run, small):
    small["search"] = {"coverage_penalty": 0.2}
    with pytest.raises(OptionError, match=r"coverage_penalty is 0\.2, but the model has not one"):
        run(tmp_path / "out", small)
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["store"]


def test_a_dry_run_refuses_what_the_run_would_refuse(tmp_path, corpus, small):
    small["search"] = {"coverage_penalty": 0.2}
    request = RunRequest(out=tmp_path / "run", files=corpus, preset="tiny", config=small)
    with pytest.raises(OptionError, match=r"coverage_penalty is 0\.2, but the model has not one"):
        describe_run(request, print)


# Whether lines are single sentences


def write_corpus(folder, every):
    """Write 400 pairs of which one in so many has two sentences in its source."""
    folder.mkdir()
    words = list(WORDS)
    lines = []
    for number in range(400):
        text = f"{words[number % 5]} {number}"
        second = " Voilà encore." if number % every == 0 else ""
        lines.append((f"Le {text}.{second}", f"The {text}."))
    for name, side in (("train.fr", 0), ("train.en", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
    return CorpusFiles(source=(folder / "train.fr",), target=(folder / "train.en",))


def describe(tmp_path, files, said, start=None):
    """Prepare a corpus in a store that may be there, and describe the model."""
    options = RunOptions(text=TextOptions(vocabulary_size=320))
    text = store_text(tmp_path / files.source[0].parent.name / "store", files, None, CORPUS)
    vocabularies = learn_subwords(text, options, said.append)
    store = store_ids(text, vocabularies, 256)
    request = RunRequest(out=tmp_path / "out", files=files)
    return describe_model(request, options, vocabularies, store, start)


CORPUS = CorpusOptions(valid_pairs=20)


def test_lines_of_several_sentences_are_noticed_whether_the_store_is_new_or_not(tmp_path, said):
    single = write_corpus(tmp_path / "single", every=20)
    several = write_corpus(tmp_path / "several", every=4)
    for _ in range(2):
        assert describe(tmp_path, single, said).facts.one_sentence_a_line is True
        assert describe(tmp_path, several, said).facts.one_sentence_a_line is False


@pytest.mark.parametrize(
    ("before", "every", "after"),
    [(True, 20, True), (None, 20, True), (False, 20, False), (True, 4, False), (False, 4, False)],
)
def test_a_tuned_model_keeps_what_is_known_of_the_one_before(tmp_path, said, before, every, after):
    files = write_corpus(tmp_path / "corpus", every)
    first = describe(tmp_path, files, said)
    facts = replace(first.facts, one_sentence_a_line=before, about="- Licence: CC-BY-4.0")
    found = describe(tmp_path, files, said, replace(first, facts=facts)).facts
    assert found.one_sentence_a_line is after
    assert found.about == "- Licence: CC-BY-4.0"


def test_marks_of_formality_are_noted_and_must_be_in_the_text(tmp_path, said):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    words = list(WORDS)
    lines = [[words[(i * j) % 5] for j in range(1, 4 + i % 3)] for i in range(200)]
    marks = ["<formal> ", "<casual> ", ""]
    source = "".join(f"{marks[i % 3]}{' '.join(line)}\n" for i, line in enumerate(lines))
    target = "".join(f"{' '.join(WORDS[word] for word in line)}\n" for line in lines)
    (corpus / "train.fr").write_text(source)
    (corpus / "train.en").write_text(target)
    files = CorpusFiles(source=(corpus / "train.fr",), target=(corpus / "train.en",))
    text = store_text(
        tmp_path / "store", files, None, CorpusOptions(valid_pairs=20, deduplicate=False)
    )

    def describe_with(start=None, **marks):
        options = options_of(**marks)
        vocabularies = learn_subwords(text, options, said.append)
        store = store_ids(text, vocabularies, 256)
        request = RunRequest(out=tmp_path / "out", files=files)
        return describe_model(request, options, vocabularies, store, start)

    first = describe_with(formal_mark="<formal>", informal_mark="<casual>")
    assert first.facts.formality == {"more": "<formal>", "less": "<casual>"}
    assert describe_with().facts.formality == {}
    tuned = describe_with(first, formal_mark="<casual>")
    assert tuned.facts.formality == {"more": "<casual>", "less": "<casual>"}
    with pytest.raises(OptionError, match="no source line begins with “<casua>” and a space; put"):
        describe_with(informal_mark="<casua>")
