"""The memory estimate against what a real step keeps."""

import pytest
import torch
from torch import nn

from dragoman.data.batches import flatten, make_batch
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.memory_estimate import TYPICAL_LENGTH, estimate_memory

SHAPE = TransformerOptions(
    num_encoder_layers=2, num_decoder_layers=2, model_dim=32, feed_forward_dim=64, num_heads=4
)
VOCABULARY = Vocabulary(500, 500, 2, 0)


def test_activations_are_those_of_a_real_step():
    options = TrainingOptions(batch_tokens=2 * TYPICAL_LENGTH * 8)
    with torch.device("meta"):
        meta = TrainingStep(build_model(SHAPE, VOCABULARY), 0.1)
    estimate = estimate_memory(meta, options, half=False)
    real = TrainingStep(build_model(SHAPE, VOCABULARY), 0.1)
    sides = [flatten([[5] * TYPICAL_LENGTH] * 8) for _ in range(2)]
    kept: dict[int, int] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        if not isinstance(tensor, nn.Parameter):
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        real(make_batch(*sides, 2))
    assert estimate.activations == pytest.approx(sum(kept.values()), rel=0.25)


def test_weights_are_counted_with_gradient_and_moments():
    with torch.device("meta"):
        meta = TrainingStep(build_model(SHAPE, VOCABULARY), 0.1)
    count = count_parameters(meta)
    plain = estimate_memory(meta, TrainingOptions(), half=False)
    averaged = estimate_memory(meta, TrainingOptions(ema_decay=0.9), half=False)
    assert plain.weights == 16 * count
    assert averaged.weights == 20 * count
    assert plain.total == plain.weights + plain.activations


def test_larger_batches_take_more_and_halves_less():
    with torch.device("meta"):
        meta = TrainingStep(build_model(SHAPE, VOCABULARY), 0.1)
    small, large = (
        estimate_memory(meta, TrainingOptions(batch_tokens=tokens), half=False).activations
        for tokens in (1000, 2000)
    )
    assert large == pytest.approx(2 * small, rel=0.05)
    half = estimate_memory(meta, TrainingOptions(batch_tokens=2000), half=True).activations
    assert half == large // 2
    parts = TrainingOptions(batch_tokens=2000, accumulate=2)
    assert estimate_memory(meta, parts, half=False).activations == small
