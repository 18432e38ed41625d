"""The loss against PyTorch's own label smoothing."""

import pytest
import torch
from torch.nn import functional

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.training.objectives.loss import TrainingStep

PAD = 2


def make_model(output_bias=False):
    torch.manual_seed(0)
    shape = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=8, num_heads=2,
        output_bias=output_bias,
    )  # fmt: skip
    model = build_model(shape, Vocabulary(12, 12, PAD, 0)).eval()
    if output_bias:
        torch.nn.init.normal_(model.output.bias)
    return model


def make_pairs():
    source, target = flatten([[5, 6, 0], [7, 0]]), flatten([[8, 0], [9, 10, 11, 0]])
    return make_batch(source, target, PAD)


@pytest.mark.parametrize("output_bias", [False, True])
def test_step_is_pytorchs_label_smoothing_without_the_padding(output_bias):
    model, batch = make_model(output_bias), make_pairs()
    TrainingStep(model, 0.2)(batch).backward()
    ours = [each.grad for each in model.parameters()]
    model.zero_grad()
    is_word = torch.arange(12) != PAD
    logits = model.output(model(batch).hidden)[..., is_word]
    places = batch.target.ids - (batch.target.ids > PAD).long()  # one column fewer
    expected = functional.cross_entropy(
        logits[batch.target.is_token], places[batch.target.is_token],
        label_smoothing=0.2, reduction="sum",
    )  # fmt: skip
    torch.testing.assert_close(TrainingStep(model, 0.2)(batch), expected)
    expected.backward()
    for found, parameter in zip(ours, model.parameters(), strict=True):
        torch.testing.assert_close(found, parameter.grad, rtol=1e-4, atol=1e-5)


def test_step_without_smoothing_is_the_negative_log_likelihood():
    model, batch = make_model(), make_pairs()
    loss = TrainingStep(model, 0.0)(batch)
    torch.testing.assert_close(loss, -token_log_probabilities(model, batch).sum())
