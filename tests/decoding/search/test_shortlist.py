"""A short-list holds what a translation needs, and a search among it is the search among all."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from dragoman.cli.command import main
from dragoman.data.batches import flatten, pad_sequences
from dragoman.decoding.search import shortlist as module
from dragoman.decoding.search.shortlist import (
    SHORT_LIST_FILE,
    ShortList,
    learn_short_list,
    measure_coverage,
    read_short_list,
)
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError, FolderError, OptionError
from dragoman.kernels.processor import can_compile
from dragoman.models.build import build_model
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.options import to_plain
from dragoman.weights import vocabulary_of, write_model

SENTENCES = ["ein Haus", "das rote Haus", "eine Katze schläft", "Zahl", "ein Haus und ein Hund"]


@pytest.fixture
def translator(tiny_folder, tmp_path):
    path = shutil.copytree(tiny_folder.path, tmp_path / "model")
    return Translator.load(path, "cpu", precision="float32")


def everything(vocabularies):
    """A short-list with all words on it."""
    sizes = [len(each) for each in vocabularies]
    never = (vocabularies.pad_id, vocabularies.target.unk_id)
    words = np.array([word for word in range(sizes[1]) if word not in never])
    return ShortList(np.full((sizes[0], 1), -1), words)


def some(vocabularies, seed):
    """A short-list of chance."""
    chance = np.random.default_rng(seed)
    sizes = [len(each) for each in vocabularies]
    never = (vocabularies.pad_id, vocabularies.target.unk_id)
    likely = chance.integers(0, sizes[1], (sizes[0], 6))
    likely[np.isin(likely, never)] = -1
    return ShortList(likely, np.array([vocabularies.eos_id]))


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_with_all_words_nothing_changes(tiny_folder, beam_size, precision):
    if precision == "int8" and not can_compile():
        pytest.skip("no eight bits here")
    translator = Translator.load(tiny_folder.path, "cpu", precision=precision)
    options = translator.options_with({"beam_size": beam_size})
    plain = translator.translate_all(SENTENCES, options=options)
    translator.short_list = everything(translator.folder.vocabularies)
    listed = translator.translate_all(SENTENCES, options=options)
    assert [each.tokens for each in listed] == [each.tokens for each in plain]
    for one, other in zip(listed, plain, strict=True):
        # The unknown word, which no list has, takes a little of the probability of the others.
        assert one.score == pytest.approx(other.score, abs=1e-2)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_only_words_of_the_list_are_said_whatever_the_company(translator, beam_size):
    vocabularies = translator.folder.vocabularies
    # A second search has all words.
    options = translator.options_with({"beam_size": beam_size, "search_again": False})
    translator.short_list = some(vocabularies, 3)
    together = translator.translate_all(SENTENCES, options=options)
    for text, found in zip(SENTENCES, together, strict=True):
        alone = translator.translate(text, options=options)
        assert alone.tokens == found.tokens
        assert alone.score == pytest.approx(found.score, abs=1e-4)
        allowed = translator.short_list.words_of(translator.encode(text)).tolist()
        assert set(found.tokens) <= set(allowed)


def test_probabilities_are_those_among_the_listed(translator):
    """The best of the listed words has the probability that it has among them alone."""
    vocabularies = translator.folder.vocabularies
    translator.short_list = some(vocabularies, 5)
    text = SENTENCES[1]
    options = translator.options_with(
        {"beam_size": 4, "length_penalty": 0.0, "search_again": False}
    )
    found = translator.translate(text, options=options)
    words = torch.from_numpy(translator.short_list.words_of(translator.encode(text)))
    engine = translator.engine
    with torch.inference_mode():
        source = pad_sequences(flatten([translator.encode(text)]), vocabularies.pad_id)
        state = engine.start(engine.encode(source), len(found.tokens))
        newest, total = vocabularies.pad_id, 0.0
        for token in found.tokens:
            hidden, state = engine.step(torch.tensor([[newest]]), state)
            logs = engine.output(hidden)[0, 0, words].log_softmax(0)
            total += float(logs[(words == token).nonzero().item()])
            newest = token
    assert found.score == pytest.approx(total, abs=1e-3)


def test_what_is_demanded_goes_by_all_words(translator):
    translator.short_list = some(translator.folder.vocabularies, 3)
    prefix = "das"
    assert translator.translate(SENTENCES[0], prefix=prefix).text.startswith(prefix)


def test_what_was_learnt_is_there(translator):
    vocabularies = translator.folder.vocabularies
    pairs = [("ein Haus", "Haus ein"), ("das rote Haus", "Haus rote das")] * 5
    short_list = learn_short_list(pairs, vocabularies, num_likely=5, num_frequent=2)
    assert measure_coverage(short_list, pairs, vocabularies) == 1
    words = short_list.words_of(vocabularies.source.encode(["ein Haus"])[0]).tolist()
    assert vocabularies.eos_id in words
    assert set(vocabularies.target.byte_ids) <= set(words)
    assert vocabularies.pad_id not in words
    assert vocabularies.target.unk_id not in words


def test_coverage_counts_what_is_missing(translator):
    vocabularies = translator.folder.vocabularies
    nothing = ShortList(np.full((len(vocabularies.source), 1), -1), np.array([0]))
    assert measure_coverage(nothing, [("ein", "Haus")], vocabularies) == 0


def test_files(translator, tmp_path):
    vocabularies = translator.folder.vocabularies
    with pytest.raises(FolderError, match="has no short-list; make one with “dragoman shortlist”"):
        ShortList.read(translator.folder)
    kept = some(vocabularies, 1)
    kept.write(translator.folder.path)
    read = read_short_list(translator.folder, is_possible=translator.takes_short_list)
    sentence = translator.encode(SENTENCES[2])
    assert np.array_equal(read.words_of(sentence), kept.words_of(sentence))


BAD = {
    "another vocabulary": {"likely": torch.zeros(3, 2).int(), "always": torch.zeros(1).int()},
    "no such word": {"likely": None, "always": torch.tensor([1 << 20]).int()},
    "words missing": {"likely": None},
    "no end symbol": {"likely": None, "always": torch.tensor([7]).int()},
    "nothing": {"likely": None, "always": torch.zeros(0).int()},
    "numbers": {"likely": None, "always": torch.tensor([-1]).int()},
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused(translator, case):
    size = len(translator.folder.vocabularies.source)
    tensors = {
        name: torch.zeros(size, 1).int() if each is None else each
        for name, each in BAD[case].items()
    }
    save_file(tensors, translator.folder.path / SHORT_LIST_FILE)
    with pytest.raises(FolderError, match="damaged, or of another model"):
        ShortList.read(translator.folder)


def test_what_is_no_file_of_tensors_is_refused(translator):
    (translator.folder.path / SHORT_LIST_FILE).write_bytes(b"nothing")
    with pytest.raises(FolderError, match="damaged, or of another model"):
        ShortList.read(translator.folder)


def test_only_engines_have_one(translator):
    plain = Translator(translator.folder, translator.model, translator.device)
    with pytest.raises(OptionError, match="--short-list: only Transformers with full attention"):
        read_short_list(plain.folder, is_possible=plain.takes_short_list)


def test_nothing_to_learn_from(translator):
    with pytest.raises(DataError, match="no sentence pairs"):
        learn_short_list([], translator.folder.vocabularies)


def test_the_verb_refuses_blank_lines(translator, tmp_path, capsys):
    blank = tmp_path / "blank"
    blank.write_text(" \n\n\u200b\n", encoding="utf-8")
    folder = translator.folder.path
    with pytest.raises(SystemExit):
        main(["shortlist", str(folder), "--source", str(blank), "--target", str(blank)])
    assert capsys.readouterr().err == (
        f"dragoman: {blank}, {blank}: have no words to learn a short-list from; give sentences "
        "and their translations\n"
    )
    assert not (folder / SHORT_LIST_FILE).exists()


def test_the_verb_refuses_what_can_do_nothing_with_a_short_list(translator, tmp_path, capsys):
    folder, path = translator.folder, tmp_path / "recurrent"
    options = RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=8)
    recurrent = build_model(options, vocabulary_of(folder.vocabularies))
    write_model(
        path, replace(folder, options=options, config={"model": to_plain(options)}), recurrent
    )
    with pytest.raises(SystemExit):
        main(["shortlist", str(path), "--source", "a", "--target", "b"])
    assert capsys.readouterr().err == (
        f"dragoman: {path}: only Transformers with full attention and without experts "
        "search among some words alone; use the folder without a short-list\n"
    )


def test_the_verb(translator, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(module, "NUM_LIKELY", 10)
    source, target = tmp_path / "a.de", tmp_path / "a.en"
    source.write_text("ein Haus\n" * 40, encoding="utf-8")
    target.write_text("Haus ein\n" * 40, encoding="utf-8")
    folder = str(translator.folder.path)
    main(["shortlist", folder, "--source", str(source), "--target", str(target)])
    assert "100.0 % of the subwords of 2 other translations" in capsys.readouterr().err
    main(["translate", folder, str(source), "--short-list", "--max-extra-tokens", "3"])
    assert len(capsys.readouterr().out.splitlines()) == 40
