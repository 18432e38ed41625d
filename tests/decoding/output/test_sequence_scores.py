"""Scores of given pairs against teacher forcing one by one, and against the search's own."""

import math
from dataclasses import replace

import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.decoding.output import sequence_scores as scores
from dragoman.decoding.output.sequence_scores import PairScore, PairScorer, open_both, split_pair
from dragoman.decoding.translator import Translator
from dragoman.errors import DataError

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def scorer(tiny_folder):
    return PairScorer(tiny_folder.folder, CPU)


def test_is_what_the_model_says_word_by_word(scorer, tiny_folder, sentence_pairs, vocabularies):
    """The softmax of each step, taken from the decoder step by step."""
    model, end = tiny_folder.model, vocabularies.eos_id
    pairs = [*sentence_pairs[:5], ("", "Le chien."), ("The dog.", "")]
    for pair, score in zip(pairs, scorer.score(pairs), strict=True):
        source, target = (
            [*each.encode([text])[0], end] for each, text in zip(vocabularies, pair, strict=True)
        )
        batch = make_batch(flatten([source]), flatten([target]), vocabularies.pad_id)
        with torch.no_grad():
            state = model.start(model.encode(batch.source), len(target))
            expected = []
            newest = vocabularies.pad_id
            for word in target:
                hidden, state = model.step(torch.tensor([[newest]]), state)
                expected.append(model.output(hidden)[0, 0].log_softmax(-1)[word].item())
                newest = word
        assert score.log_probabilities == pytest.approx(expected, abs=1e-4)
        assert score.pieces == tuple(vocabularies.target.pieces(target))
        assert score.total == pytest.approx(sum(expected), abs=1e-3)
        assert score.mean == pytest.approx(sum(expected) / len(target), abs=1e-4)


@pytest.mark.parametrize("batch_scores", [1, 20_000, 1 << 25])
def test_company_and_order_change_nothing(scorer, sentence_pairs, monkeypatch, batch_scores):
    monkeypatch.setattr(scores, "BATCH_SCORES", batch_scores)
    pairs = sentence_pairs[:12]
    alone = [scorer.score([pair])[0] for pair in pairs]
    for each, other in zip(scorer.score(pairs[::-1]), alone[::-1], strict=True):
        assert each.pieces == other.pieces
        assert each.log_probabilities == pytest.approx(other.log_probabilities, abs=1e-5)
    assert scorer.score([]) == []


def test_agrees_with_the_search(scorer, tiny_folder):
    translator = Translator.load(tiny_folder.path, "cpu")
    text = "The dog sees a house."
    options = replace(translator.options, length_penalty=0.0)
    found = translator.translate(text, options=options)
    (score,) = scorer.score([(text, found.text)])
    encoded = translator.folder.vocabularies.target.encode([found.text])[0]
    if tuple(encoded) == found.tokens[:-1]:  # else the search spelt it otherwise
        assert score.total == pytest.approx(found.score, abs=1e-3)
    else:
        assert score.total != pytest.approx(found.score, abs=1e-6)


def test_written_for_people_and_programs():
    score = PairScore(pieces=("▁a:b", "</s>"), log_probabilities=(-1.5, -0.25))
    assert score.in_words() == "-1.7500"
    assert score.in_words(normalise=True) == "-0.8750"
    assert score.in_words(per_token=True) == "-1.7500\t▁a:b:-1.5000 </s>:-0.2500"
    number, words = score.in_words(per_token=True).split("\t")
    numbers = [float(word.rsplit(":", 1)[1]) for word in words.split(" ")]
    assert math.fsum(numbers) == float(number)


def test_a_pair_that_is_too_long_is_named(scorer, monkeypatch):
    monkeypatch.setattr(scorer, "_longest", 6)
    with pytest.raises(DataError) as caught:
        scorer.score([("a", "a"), ("dog " * 9, "b")], lambda index: f"here, line {index + 4}")
    assert str(caught.value) == (
        "here, line 5: 10 subwords, but at most 6 can be scored at once; split it into sentences"
    )


def test_columns():
    assert split_pair("a b\tc", "here") == ("a b", "c")
    assert split_pair("\t", "here") == ("", "")
    for line, words in (("a b", "1 column"), ("a\tb\tc", "3 columns")):
        with pytest.raises(DataError) as caught:
            split_pair(line, "here, line 3")
        assert str(caught.value) == (
            f"here, line 3: {words} where there must be 2 (source, tab, target)"
        )


def test_two_files_side_by_side(tmp_path):
    (tmp_path / "a").write_bytes(b"one\ttab\r\ntwo\n\nfour")
    (tmp_path / "b").write_bytes(b"eins\nzwei\n\nvier\n")
    reader = open_both(tmp_path / "a", tmp_path / "b")
    assert b"".join(reader.take(10)) == b"one tab\teins\ntwo\tzwei\n\t\nfour\tvier\n"
    assert reader.take(10) == []


@pytest.mark.parametrize("longer", [0, 1])
def test_files_of_unequal_length(tmp_path, longer):
    paths = [tmp_path / "a", tmp_path / "b"]
    for side, path in enumerate(paths):
        path.write_text("x\n" * (4 if side == longer else 2))
    reader = open_both(*paths)
    assert len(reader.take(10)) == 2
    with pytest.raises(DataError) as caught:
        reader.take(10)
    assert str(caught.value) == (
        f"{paths[longer]}, line 3: the other file has only 2 lines; line n of one must translate "
        "line n of the other"
    )
