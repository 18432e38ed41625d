"""The task of recalling a name, and the readers that learn it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.paper.tasks.name_recall import (
    FILLERS,
    KINDS,
    NAMES,
    QUESTION,
    SHORTEST,
    WIDTH,
    WORDS,
    make_reader,
    measure_recall,
    sample_sentences,
    train_reader,
)


def test_words_are_all_different():
    assert len(set(WORDS)) == len(WORDS) == len(NAMES) + len(QUESTION) + len(FILLERS)


@given(st.integers(1, 6), st.integers(SHORTEST, 40), st.integers(0, 99))
def test_sentences_are_a_name_fillers_and_the_question(count, distance, seed):
    sentences = sample_sentences(count, distance, torch.Generator().manual_seed(seed))
    # The name, so many words, the blank.
    assert sentences.shape == (count, distance + 2)
    for sentence in sentences.tolist():
        words = [WORDS[word] for word in sentence]
        assert words[0] == NAMES[sentence[0]]
        assert set(words[1 : -len(QUESTION)]) <= set(FILLERS)
        assert tuple(words[-len(QUESTION) :]) == QUESTION


@pytest.mark.parametrize("kind", KINDS)
def test_readers_are_the_same_for_a_seed_and_read_each_sentence_by_itself(kind):
    reader, again = make_reader(kind, 3), make_reader(kind, 3)
    sentences = sample_sentences(5, 12, torch.Generator().manual_seed(1))
    with torch.no_grad():
        scores = reader(reader.words(sentences))
        assert scores.shape == (5, len(NAMES))
        torch.testing.assert_close(scores, again(again.words(sentences)))
        alone = reader(reader.words(sentences[2:3]))
    torch.testing.assert_close(alone, scores[2:3], rtol=0, atol=1e-5)


def test_recurrent_matrices_begin_orthogonal():
    for kind in ("RNN", "GRU", "LSTM", "RNN with attention"):
        for matrix in make_reader(kind, 1).body.layer.cell.weight_hidden.split(WIDTH):
            torch.testing.assert_close(matrix @ matrix.T, torch.eye(WIDTH), rtol=0, atol=1e-5)


def test_without_positions_the_order_of_fillers_does_not_matter():
    sentences = sample_sentences(4, 15, torch.Generator().manual_seed(1))
    turned = sentences.clone()
    last = sentences.size(1) - len(QUESTION)
    turned[:, 1:last] = sentences[:, 1:last].flip(1)
    changes = {}
    for kind in ("Transformer", "Transformer without positions"):
        reader = make_reader(kind, 1)
        with torch.no_grad():
            scores = [reader(reader.words(each)) for each in (sentences, turned)]
        changes[kind] = (scores[0] - scores[1]).abs().max().item()
    assert changes["Transformer without positions"] < 1e-5 < 1e-3 < changes["Transformer"]


def test_guessing_is_right_by_chance_and_training_is_better():
    reader = make_reader("Transformer without positions", 1)
    before = measure_recall(reader, 10, count=1000, seed=1)
    # Five deviations of a binomial distribution.
    assert before < 1 / len(NAMES) + 5 * (1 / len(NAMES) / 1000) ** 0.5 + 0.1
    loss = train_reader(reader, limit=12, num_steps=120, seed=1)
    assert loss < 1
    assert measure_recall(reader, 10, count=200, seed=1) > 0.8
    # What it has learnt holds far beyond the distances of training.
    assert measure_recall(reader, 100, count=200, seed=1) > 0.8
