"""Estimates of the memory of training, on the meta device."""

from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.build import build_model, count_parameters
from dragoman.models.interface import Vocabulary
from dragoman.training.configuration import RunOptions
from dragoman.training.objectives.loss import TrainingStep
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.gradients import precision_context

BYTES = 4
TYPICAL_LENGTH = 25


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Estimated bytes of training.

    Parameters
    ----------
    weights : int
        Weights, gradients, optimiser and moving average.
    activations : int
        Tensors that one batch saves for the backward pass.
    """

    weights: int
    activations: int

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.weights + self.activations


def estimate_run_memory(
    options: RunOptions, vocabulary: Vocabulary, device: torch.device
) -> MemoryEstimate:
    """Count the bytes that a run will need, from its options alone."""
    is_half = not isinstance(precision_context(options.training, device), nullcontext)
    with torch.device("meta"):
        model = build_model(options.model, vocabulary)
    step = TrainingStep(model, options.training.label_smoothing)
    return estimate_memory(step, options.training, half=is_half)


def estimate_memory(
    meta_step: TrainingStep, options: TrainingOptions, *, half: bool
) -> MemoryEstimate:
    """Count the bytes that training will need.

    Returns
    -------
    MemoryEstimate
        The activations are those of sentences of 25 subwords; longer ones take a little more. Each
        translation sampled for reward training counts like another reference, and so does a second
        forward pass for consistency.
    """
    keeps_average = options.ema_decay is not None or options.optimiser == "schedule-free"
    copies = 4 + keeps_average
    rows = max(1, options.batch_tokens // (options.accumulate or 1) // (2 * TYPICAL_LENGTH))
    saved: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        if not isinstance(tensor, nn.Parameter):
            storage = tensor.untyped_storage()
            saved[storage._cdata] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss = meta_step(_meta_batch(rows))
    num_targets = 1 if options.objective == "likelihood" else 1 + options.reward_samples
    num_targets += options.consistency != "none"
    activations = num_targets * sum(saved.values())
    del loss
    return MemoryEstimate(
        weights=copies * BYTES * count_parameters(meta_step),
        activations=activations // 2 if half else activations,
    )


def _meta_batch(rows: int) -> Batch:
    """Make a batch of sentences of typical length, without contents."""
    ids = torch.zeros(rows, TYPICAL_LENGTH, dtype=torch.int64, device="meta")
    lengths = torch.zeros(rows, dtype=torch.int64, device="meta")
    sequences = Sequences(ids, lengths)
    return Batch(sequences, sequences, 2 * ids.numel(), ids.numel())
