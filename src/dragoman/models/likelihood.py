"""Likelihood of given translations under a model."""

from collections.abc import Iterable

import torch
from torch import Tensor

from dragoman.data.batches import Batch
from dragoman.models.interface import TranslationModel
from dragoman.shapes import Float


def token_log_probabilities(model: TranslationModel, batch: Batch) -> Float[Tensor, "batch length"]:
    """Compute the log-probability of every target token given source and prefix."""
    logits = model.output(model.forward(batch).hidden).float()
    chosen = logits.gather(-1, batch.target.ids.unsqueeze(-1)).squeeze(-1)
    log_probabilities = chosen - logits.logsumexp(-1)
    return log_probabilities.where(batch.target.is_token, 0.0)


@torch.inference_mode()
def mean_loss(model: TranslationModel, batches: Iterable[Batch]) -> float:
    """Compute the cross-entropy: the mean negative log-likelihood of a target token, in nats."""
    total, num_tokens = 0.0, 0
    for batch in batches:
        total -= token_log_probabilities(model, batch).sum().item()
        num_tokens += batch.num_target_tokens
    return total / num_tokens
