"""Likelihoods against Marian's implementation of the whole model, and against their own laws."""

import math

import pytest
import torch

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import mean_loss, token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import sinusoidal_positions

PAD, EOS, SIZE, DIM = 2, 0, 23, 16
SHAPE = TransformerOptions(
    num_encoder_layers=2, num_decoder_layers=3, model_dim=DIM, feed_forward_dim=20, num_heads=4,
    attention_bias=True,
)  # fmt: skip
PAIRS = [
    ([3, 4, 5, 6, EOS], [7, EOS]),
    ([8, EOS], [9, 10, 11, 12, 3, EOS]),
    ([13, 14, 4, EOS], [15, 16, EOS]),
]


def batch_of(pairs):
    source, target = zip(*pairs, strict=True)
    return make_batch(flatten(source), flatten(target), PAD)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    model = build_model(SHAPE, Vocabulary(SIZE, SIZE, PAD, EOS)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.normal_(0.5, 0.3)
    return model


def copy_linear(theirs, ours):
    theirs.weight.copy_(ours.weight)
    theirs.bias.copy_(ours.bias)


@torch.no_grad()
def copy_layer(theirs, ours):
    pairs = [(theirs.self_attn, ours.self_attention)]
    copy_linear(theirs.self_attn_layer_norm, ours.self_attention_norm.norm)
    if hasattr(ours, "cross_attention"):
        pairs.append((theirs.encoder_attn, ours.cross_attention))
        copy_linear(theirs.encoder_attn_layer_norm, ours.cross_attention_norm.norm)
    for attention, own in pairs:
        copy_linear(attention.q_proj, own.query)
        copy_linear(attention.k_proj, own.key)
        copy_linear(attention.v_proj, own.value)
        copy_linear(attention.out_proj, own.output)
    copy_linear(theirs.fc1, ours.feed_forward.inner)
    copy_linear(theirs.fc2, ours.feed_forward.outer)
    copy_linear(theirs.final_layer_norm, ours.feed_forward_norm.norm)


@torch.no_grad()
def marian_of(model):
    transformers = pytest.importorskip("transformers")
    config = transformers.MarianConfig(
        vocab_size=SIZE, d_model=DIM, encoder_layers=2, decoder_layers=3,
        encoder_ffn_dim=20, decoder_ffn_dim=20, encoder_attention_heads=4,
        decoder_attention_heads=4, activation_function="relu", scale_embedding=True,
        max_position_embeddings=64, pad_token_id=PAD, eos_token_id=EOS,
        decoder_start_token_id=PAD, dropout=0.0,
    )  # fmt: skip
    theirs = transformers.MarianMTModel(config).eval()
    theirs.model.shared.weight.copy_(model.output.words)
    theirs.lm_head.weight.copy_(model.output.words)
    table = sinusoidal_positions(0, 64, DIM, torch.device("cpu"))
    for part, layers in (
        (theirs.model.encoder, model.encoder),
        (theirs.model.decoder, model.decoder),
    ):
        part.embed_positions.weight.copy_(table)
        part.embed_tokens.weight.copy_(model.output.words)
        for layer, own in zip(part.layers, layers, strict=True):
            copy_layer(layer, own)
    theirs.final_logits_bias[0, PAD] = -math.inf
    return theirs


@pytest.mark.slow
def test_equals_marian(model):
    theirs = marian_of(model)
    batch = batch_of(PAIRS)
    with torch.no_grad():
        logits = theirs(
            input_ids=batch.source.ids,
            attention_mask=batch.source.is_token.long(),
            decoder_input_ids=batch.target.shifted(PAD),
        ).logits
        found = token_log_probabilities(model, batch)
    chosen = logits.log_softmax(-1).gather(-1, batch.target.ids.unsqueeze(-1)).squeeze(-1)
    is_token = batch.target.is_token
    torch.testing.assert_close(found[is_token], chosen[is_token], rtol=1e-5, atol=1e-5)


def test_is_the_softmax_of_the_output(model):
    batch = batch_of(PAIRS)
    found = token_log_probabilities(model, batch)
    probabilities = model.output(model(batch).hidden).softmax(-1)
    for row, (_, target) in enumerate(PAIRS):
        for place, word in enumerate(target):
            expected = probabilities[row, place, word].log()
            torch.testing.assert_close(found[row, place], expected, rtol=1e-5, atol=1e-5)


def test_padding_counts_nothing(model):
    batch = batch_of(PAIRS)
    assert token_log_probabilities(model, batch)[~batch.target.is_token].eq(0).all()


def test_probabilities_of_all_next_words_sum_to_one(model):
    """The end symbol or any word may follow: over all of them the probability is one."""
    words = [word for word in range(SIZE) if word != PAD]
    batch = batch_of([([3, 4, EOS], [5, word]) for word in words])
    total = token_log_probabilities(model, batch)[:, 1].exp().sum()
    torch.testing.assert_close(total, torch.tensor(1.0))


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1], [1], [2], [0, 2]])
def test_company_and_order_change_nothing(model, order):
    alone = [token_log_probabilities(model, batch_of([pair]))[0] for pair in PAIRS]
    together = token_log_probabilities(model, batch_of([PAIRS[index] for index in order]))
    for row, index in enumerate(order):
        expected = alone[index]
        torch.testing.assert_close(together[row, : len(expected)], expected, rtol=1e-5, atol=1e-5)


def test_mean_loss_is_the_mean_over_all_tokens(model):
    batches = [batch_of(PAIRS[:2]), batch_of(PAIRS[2:])]
    sums = [token_log_probabilities(model, each).sum().item() for each in batches]
    num_tokens = sum(len(target) for _, target in PAIRS)
    assert mean_loss(model, iter(batches)) == pytest.approx(-sum(sums) / num_tokens, rel=1e-6)
    assert mean_loss(model, [batch_of(PAIRS)]) == pytest.approx(mean_loss(model, batches), rel=1e-5)
