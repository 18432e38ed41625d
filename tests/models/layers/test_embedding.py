"""Words to vectors and back: the scale, the places, and the padding that never moves."""

import math

import pytest
import torch
from torch import nn

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.layers.embedding import Embedding, OutputLayer, make_word_matrices
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import SinusoidalPositions, sinusoidal_positions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.optimisers.optimiser import build_optimiser
from dragoman.training.options import TrainingOptions

PAD = 2


def make_embedding(dropout=0.0):
    torch.manual_seed(0)
    words = torch.randn(9, 16)
    words[PAD] = 0
    return Embedding(
        nn.Parameter(words), SinusoidalPositions(16), pad_id=PAD, dropout=dropout, scale=4.0
    )


def test_is_the_scaled_row_and_the_position():
    embedding = make_embedding()
    tokens = torch.tensor([[3, 0, PAD], [8, 5, 0]])
    found = embedding(tokens, 4)
    places = sinusoidal_positions(4, 3, 16, torch.device("cpu"))
    for row in range(2):
        for place in range(3):
            expected = embedding.words[tokens[row, place]] * math.sqrt(16) + places[place]
            torch.testing.assert_close(found[row, place], expected)


def test_words_may_stand_without_positions():
    words = nn.Parameter(torch.randn(9, 16))
    embedding = Embedding(words, None, pad_id=PAD, dropout=0.0)
    tokens = torch.tensor([[3, 0, 5]])
    torch.testing.assert_close(embedding(tokens)[0], words[tokens[0]])


@pytest.mark.parametrize("tied", ["all", "target", "none"])
def test_tied_matrices_are_one(tied):
    words = make_word_matrices((7, 7), tied, embedding_dim=4)
    assert (words.source is words.target) == (tied == "all")
    assert (words.output is words.target) == (tied != "none")
    assert {each.shape for each in words} == {(7, 4)}


def test_untied_matrices_have_their_own_sizes():
    words = make_word_matrices((7, 9), "none", embedding_dim=4, output_dim=5)
    assert [tuple(each.shape) for each in words] == [(7, 4), (9, 4), (9, 5)]


def test_padding_is_its_position_alone():
    found = make_embedding()(torch.full((1, 4), PAD))
    torch.testing.assert_close(found[0], sinusoidal_positions(0, 4, 16, torch.device("cpu")))


def test_dropout_is_on_the_sum():
    embedding = make_embedding(dropout=0.5)
    tokens = torch.full((40, 30), 3)
    whole, dropped = embedding.eval()(tokens), embedding.train()(tokens)
    is_left = dropped != 0
    torch.testing.assert_close(dropped[is_left], 2 * whole[is_left])
    assert 0.45 < is_left.float().mean() < 0.55


def test_output_is_the_product_with_the_words():
    words = nn.Parameter(torch.randn(9, 16))
    hidden = torch.randn(2, 3, 16)
    logits = OutputLayer(words, pad_id=PAD)(hidden)
    is_word = torch.arange(9) != PAD
    torch.testing.assert_close(logits[..., is_word], (hidden @ words.T)[..., is_word])


def test_padding_has_no_probability():
    output = OutputLayer(nn.Parameter(torch.randn(9, 16)), pad_id=PAD)
    probabilities = output(100 * torch.randn(2, 3, 16)).softmax(-1)
    assert probabilities[..., PAD].eq(0).all()
    torch.testing.assert_close(probabilities.sum(-1), torch.ones(2, 3))


@pytest.mark.parametrize("tied", ["all", "target", "none"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_padding_row_stays_zero_through_training(tied, smoothing):
    torch.manual_seed(0)
    shape = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=8, num_heads=2,
        tied_embeddings=tied,
    )  # fmt: skip
    model = build_model(shape, Vocabulary(12, 12, PAD, 0)).train()
    step = TrainingStep(model, smoothing)
    optimiser = build_optimiser(model, TrainingOptions(weight_decay=0.01))
    for group in optimiser.param_groups:
        group["lr"] = 0.05
    batch = make_batch(flatten([[3, 4, 5, 0], [6, 0]]), flatten([[7, 0], [8, 9, 10, 11, 0]]), PAD)
    matrices = (model.source_embedding.words, model.target_embedding.words, model.output.words)
    before = [words.detach().clone() for words in matrices]
    for _ in range(4):
        optimiser.zero_grad()
        step(batch).backward()
        for words in matrices:
            assert words.grad[PAD].eq(0).all()
        optimiser.step()
    for words, old in zip(matrices, before, strict=True):
        assert words[PAD].eq(0).all()
        assert not torch.equal(words, old)


def test_a_bias_is_added_to_every_score_but_that_of_padding():
    words = nn.Parameter(torch.randn(7, 4))
    layer = OutputLayer(words, pad_id=2, has_bias=True)
    with torch.no_grad():
        layer.bias.normal_()
    hidden = torch.randn(3, 4)
    expected = hidden @ words.T + layer.bias
    expected[:, 2] = -torch.inf
    torch.testing.assert_close(layer(hidden), expected)


@pytest.mark.parametrize("has_bias", [False, True])
def test_factors_multiply_to_the_scores(has_bias):
    layer = OutputLayer(nn.Parameter(torch.randn(7, 4)), pad_id=2, has_bias=has_bias)
    if layer.bias is not None:
        with torch.no_grad():
            layer.bias.normal_()
    hidden = torch.randn(3, 4)
    states, words = layer.factors(hidden)
    kept = [0, 1, 3, 4, 5, 6]
    torch.testing.assert_close((states @ words.T)[:, kept], layer(hidden)[:, kept])
    assert (words is layer.words) == (not has_bias)
