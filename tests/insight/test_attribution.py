"""Gradient × input against closed forms, small changes and planted dependencies."""

import numpy as np
import pytest
import torch
from torch import nn

from dragoman.data.batches import Sequences, flatten, make_batch
from dragoman.insight import attribution
from dragoman.insight.attribution import contribution_shares, gradient_times_input
from dragoman.models.build import build_model
from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.embedding import Embedding, OutputLayer
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import (
    DeepAttOptions,
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)

EOS, PAD = 0, 2
SIZE, WIDTH = 12, 6
VOCABULARY = Vocabulary(SIZE, SIZE, PAD, EOS)
SMALL = {"num_encoder_layers": 1, "num_decoder_layers": 1, "model_dim": 8, "dropout": 0.0}
TIED = {"tied_embeddings": "none"}
FAMILIES = {
    "transformer": TransformerOptions(
        **SMALL, **TIED, feed_forward_dim=8, num_heads=2, positions="alibi"
    ),
    "seq2seq": Seq2seqOptions(num_layers=2, model_dim=8),
    "seq2seq forwards": Seq2seqOptions(num_layers=1, model_dim=8, reverse_source=False),
    "rnnsearch": RNNsearchOptions(model_dim=8, embedding_dim=8, maxout_dim=8),
    "luong": LuongOptions(num_layers=1, model_dim=8, dropout=0.0),
    "gnmt": GNMTOptions(**SMALL),
    "deep-att": DeepAttOptions(**SMALL, embedding_dim=8),
    "bytenet": ByteNetOptions(
        num_encoder_sets=1, num_decoder_sets=1, max_dilation=2, model_dim=8, length_extra=2
    ),
}


class LinearModel(nn.Module):
    """Scores that are linear in the source vectors, differently at each target position."""

    def __init__(self, *, backwards=False, padding=0):
        super().__init__()
        torch.manual_seed(1)
        words = torch.randn(SIZE, WIDTH)
        words[PAD] = 0
        self.source_embedding = Embedding(nn.Parameter(words), None, pad_id=PAD, dropout=0.0)
        self.output = OutputLayer(nn.Parameter(torch.randn(SIZE, WIDTH)), pad_id=PAD)
        self.mixing = torch.randn(3, 4, WIDTH, WIDTH)
        self.backwards = backwards
        self.padding = padding

    def encode(self, source):
        ids = source.ids.flip(1) if self.backwards else source.ids
        ids = nn.functional.pad(ids, (0, self.padding), value=PAD)
        states = self.source_embedding(ids)[:, : source.ids.size(1)]
        return states.flip(1) if self.backwards else states

    def start(self, memory, capacity):
        raise NotImplementedError

    def step(self, tokens, state):
        raise NotImplementedError

    def forward(self, batch):
        states = self.encode(batch.source)
        return Output(torch.einsum("bsi,tsij->btj", states, self.mixing), None)


LINEAR_BATCH = make_batch(flatten([[5, 6, 5, EOS]]), flatten([[7, 9, EOS]]), PAD)


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("padding", [0, 3])
def test_linear_model_is_explained_exactly(backwards, padding):
    model = LinearModel(backwards=backwards, padding=padding)
    found = gradient_times_input(model, LINEAR_BATCH)
    with torch.no_grad():
        states = model.source_embedding.words[LINEAR_BATCH.source.ids[0]]
        # What each source word adds to the score of each subword, at each target position.
        added = torch.einsum("si,tsij,vj->tsv", states, model.mixing, model.output.words)
        added[:, :, PAD] = 0
        scores = added.sum(1)
        scores[:, PAD] = -torch.inf
        mean = (added * scores.softmax(-1).unsqueeze(1)).sum(-1)
        targets = LINEAR_BATCH.target.ids[0]
        expected = added[torch.arange(3), :, targets] - mean
        # Together they are how far the word's score lies over the mean score.
        over = scores[torch.arange(3), targets] - mean.sum(1)
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.sum(1), over, atol=1e-4, rtol=1e-4)


def make_model(shape):
    torch.manual_seed(2)
    model = build_model(shape, VOCABULARY).eval()
    with torch.no_grad():
        for each in model.parameters():
            each.add_(torch.randn_like(each) * 0.3)
        model.source_embedding.words[PAD] = 0
    return model


@pytest.mark.parametrize("family", FAMILIES)
def test_equals_what_a_small_change_of_a_word_does(family):
    model = make_model(FAMILIES[family]).double()
    source = [7, 4, 9, 5, EOS]
    batch = make_batch(flatten([source]), flatten([[6, 3, 8, EOS]]), PAD)
    found = gradient_times_input(model, batch)
    expected = torch.empty_like(found)
    words, change = model.source_embedding.words, 1e-3
    for place, word in enumerate(source):
        before = words.detach()[word].clone()
        sides = []
        for sign in (1, -1):
            with torch.no_grad():
                words[word] = before * (1 + sign * change)
                sides.append(token_log_probabilities(model, batch)[0])
                words[word] = before
        expected[:, place] = (sides[0] - sides[1]) / (2 * change)
    assert found.abs().max() > 0.01
    torch.testing.assert_close(found, expected, atol=2e-3, rtol=1e-2)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("place", [0, 2, 3])
def test_the_word_that_decides_has_the_whole_share(family, place):
    """All words but one are nothing to the model, so that it can depend on that one alone."""
    model = make_model(FAMILIES[family])
    source = [5, 5, 5, 5, EOS]
    source[place] = 9
    with torch.no_grad():
        model.source_embedding.words[[5, EOS]] = 0
    batch = make_batch(flatten([source]), flatten([[6, 3, EOS]]), PAD)
    shares = contribution_shares(gradient_times_input(model, batch).numpy())
    expected = np.zeros((3, 5))
    expected[:, place] = 1
    np.testing.assert_array_equal(shares, expected)


def test_positions_are_part_of_the_vector():
    shape = ConvS2SOptions(
        encoder_blocks="1x8k3", decoder_blocks="1x8k3", model_dim=8, output_dim=8, dropout=0.0
    )
    torch.manual_seed(4)
    model = build_model(shape, VOCABULARY).eval()
    batch = make_batch(flatten([[7, 4, EOS]]), flatten([[6, EOS]]), PAD)
    found = gradient_times_input(model, batch)
    assert found.shape == (2, 3)
    assert found.any()


def test_shares_sum_to_one_whatever_the_sign():
    signed = np.array([[1.0, -3.0], [0.0, 0.0], [-2.0, 0.0]])
    np.testing.assert_allclose(contribution_shares(signed), [[0.25, 0.75], [0, 0], [1, 0]])


def test_model_is_left_as_it_was():
    model = LinearModel()
    gradient_times_input(model, LINEAR_BATCH)
    assert not model.source_embedding._forward_hooks
    assert not model.source_embedding._forward_pre_hooks
    assert all(each.grad is None for each in model.parameters())


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("length", [11, 12, 121, 122, 200])
def test_sentence_may_be_longer_than_there_are_words(backwards, length):
    model = LinearModel(backwards=backwards, padding=5)
    source = Sequences(torch.full((1, length), 5), torch.tensor([length]))
    (places,) = attribution._find_places(model, source)
    expected = list(range(length))
    assert places.tolist() == (expected[::-1] if backwards else expected) + [-1] * 5
