"""The loss against PyTorch's own label smoothing."""

import torch
from torch import nn
from torch.nn import functional

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model
from dragoman.models.embedding import OutputLayer
from dragoman.models.interface import Vocabulary
from dragoman.models.likelihood import token_log_probabilities
from dragoman.models.options import TransformerOptions
from dragoman.training.loss import TrainingStep, smoothed_cross_entropy

PAD = 2


def make_output(vocabulary: int, width: int) -> OutputLayer:
    words = torch.randn(vocabulary, width)
    words[PAD] = 0
    return OutputLayer(nn.Parameter(words), pad_id=PAD)


def test_equals_pytorch_without_the_padding():
    torch.manual_seed(0)
    output = make_output(11, 8)
    hidden = torch.randn(3, 5, 8)
    targets = torch.randint(3, 11, (3, 5))
    possible = [index for index in range(11) if index != PAD]
    logits = (hidden @ output.words.T)[..., possible]
    expected = functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten() - 1, label_smoothing=0.1, reduction="none"
    )
    found = smoothed_cross_entropy(output, hidden, targets, 0.1)
    torch.testing.assert_close(found.flatten(), expected, rtol=1e-5, atol=1e-5)


def test_gradients_equal_pytorch():
    torch.manual_seed(0)
    output = make_output(9, 4)
    hidden = torch.randn(2, 3, 4, requires_grad=True)
    targets = torch.randint(3, 9, (2, 3))
    smoothed_cross_entropy(output, hidden, targets, 0.2).sum().backward()
    ours = (hidden.grad.clone(), output.words.grad.clone())
    hidden.grad = output.words.grad = None
    possible = [index for index in range(9) if index != PAD]
    logits = (hidden @ output.words.T)[..., possible].flatten(0, 1)
    functional.cross_entropy(
        logits, targets.flatten() - 1, label_smoothing=0.2, reduction="sum"
    ).backward()
    torch.testing.assert_close(ours[0], hidden.grad, rtol=1e-4, atol=1e-5)
    is_word = torch.arange(9) != PAD
    torch.testing.assert_close(ours[1][is_word], output.words.grad[is_word], rtol=1e-4, atol=1e-5)


def test_step_without_smoothing_is_the_negative_log_likelihood():
    torch.manual_seed(0)
    shape = TransformerOptions(
        num_encoder_layers=1, num_decoder_layers=1, model_dim=8, feed_forward_dim=8, num_heads=2
    )
    model = build_model(shape, Vocabulary(12, 12, PAD, 0)).eval()
    source, target = flatten([[5, 6, 0], [7, 0]]), flatten([[8, 0], [9, 10, 11, 0]])
    batch = make_batch(source, target, PAD)
    loss = TrainingStep(model, 0.0)(batch)
    torch.testing.assert_close(loss, -token_log_probabilities(model, batch).sum())
