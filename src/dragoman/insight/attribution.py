"""Attribute target tokens to source tokens in any model: gradient × input."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.interface import TranslationModel
from dragoman.models.likelihood import token_log_probabilities
from dragoman.shapes import Float, Int

PADDING = -1


def gradient_times_input(
    model: TranslationModel, batch: Batch
) -> Float[Tensor, "target_length source_length"]:
    r"""Compute how much each source token speaks for or against each target token.

    Notes
    -----
    With :math:`x_i` the vector by which source word i enters the model (its position included,
    where that is added), entry (j, i) is :math:`x_i^\top \partial \log p(y_j) / \partial x_i`. To
    first order, that much log-probability is lost if the vector is set to zero; where the
    log-probability is linear in the vectors, exactly that much. Of a word that the model is sure
    of, hardly any gradient is left, and the shares of what is left say little.

    One pass back for each target word. A family may read its sentence from the end, or read
    padding after it: which vector belongs to which word is found by watching it read a sentence of
    words that are all different (several, if there are not so many words).
    """
    places = _find_places(model, batch.source)
    with torch.enable_grad(), _watched(model) as embedded:
        logs = token_log_probabilities(model, batch)[0]
    found = logs.new_zeros(len(logs), batch.source.ids.size(1))
    for row, log in zip(found, logs, strict=True):
        gradients = torch.autograd.grad(log, embedded, retain_graph=True, materialize_grads=True)
        for vectors, gradient, place in zip(embedded, gradients, places, strict=True):
            is_word = place != PADDING
            contributions = (vectors.detach() * gradient).sum(-1)[0]
            row.index_add_(0, place[is_word], contributions[is_word].to(row.dtype))
    return found


def contribution_shares(
    signed: Float[np.ndarray, "rows columns"],
) -> Float[np.ndarray, "rows columns"]:
    """Normalise absolute contributions to shares that sum to one.

    Returns
    -------
    Float[np.ndarray, "rows columns"]
        Each row's absolute values, divided by their sum; a row of zeros stays as it is.
    """
    sizes = np.abs(signed)
    totals = sizes.sum(axis=1, keepdims=True)
    return sizes / np.where(totals > 0, totals, 1)


@contextmanager
def _watched(model: TranslationModel) -> Iterator[list[Tensor]]:
    """Capture source embeddings as leaves to differentiate by."""
    embedded: list[Tensor] = []

    def note(_module: nn.Module, _given: object, vectors: Tensor) -> Tensor:
        embedded.append(vectors.detach().requires_grad_())
        return embedded[-1]

    handle = model.source_embedding.register_forward_hook(note)  # type: ignore[attr-defined]
    try:
        yield embedded
    finally:
        handle.remove()


@torch.no_grad()
def _find_places(model: TranslationModel, source: Sequences) -> list[Int[Tensor, "vectors"]]:
    """Find, for each embedding call, the source position of each vector.

    The words read are the digits of their places, the lowest digits in a first sentence, and so on
    if there are more places than words.
    """
    embedding = model.source_embedding  # type: ignore[attr-defined]
    device, pad_id = source.ids.device, embedding.pad_id
    ids = torch.arange(len(embedding.words), device=device)
    digits = ids[ids != pad_id]
    value_of = torch.searchsorted(digits, ids)
    order = torch.arange(source.ids.size(1), device=device)
    weights = [1]
    while weights[-1] * len(digits) < len(order):
        weights.append(weights[-1] * len(digits))
    probes = [digits[order // weight % len(digits)].unsqueeze(0) for weight in weights]
    reads = [_read_tokens(model, embedding, Sequences(each, source.lengths)) for each in probes]
    scale = torch.tensor(weights, device=device).unsqueeze(1)
    calls = [torch.stack(tokens) for tokens in zip(*reads, strict=True)]
    return [(value_of[call] * scale).sum(0).where(call[0] != pad_id, PADDING) for call in calls]


def _read_tokens(
    model: TranslationModel, embedding: nn.Module, source: Sequences
) -> list[Int[Tensor, "vectors"]]:
    """Run the encoder, and record which tokens each embedding call looks up."""
    read: list[Tensor] = []
    handle = embedding.register_forward_pre_hook(lambda _, given: read.append(given[0][0]))
    try:
        model.encode(source)
    finally:
        handle.remove()
    return read
