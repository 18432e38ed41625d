"""A CPU's gradient, computed by all cores at once, each with sentences of its own."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import numpy as np
import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences, split_rows
from dragoman.kernels.dropout import own_random_numbers
from dragoman.models.families import ModelOptions
from dragoman.models.options import TransformerOptions
from dragoman.training.options import TrainingOptions

MAX_SHARES = 8


class SharedGradients:
    """Computes the gradient of a batch in shares, one thread each.

    Parameters
    ----------
    compute_loss : Callable[[Batch], Tensor]
        Computes the summed loss of some pairs. It is called by several threads at once.
    parameters : Sequence[nn.Parameter]
        What the gradient is wanted of.
    num_shares : int
        How many threads compute.

    Notes
    -----
    Within one operation the cores share what is often too little to be shared, and wait for one
    another at its end; sentences have nothing to do with one another until their gradients are
    added. These are added in a fixed order, and every share drops out by random numbers of its own,
    seeded from PyTorch's generator: the same seed and number of threads give the same weights.
    """

    def __init__(
        self,
        compute_loss: Callable[[Batch], Tensor],
        parameters: Sequence[nn.Parameter],
        num_shares: int,
    ) -> None:
        self._compute_loss = compute_loss
        self._parameters = parameters
        self._num_shares = num_shares
        self._threads = ThreadPoolExecutor(num_shares, thread_name_prefix="gradient")

    def __call__(self, batch: Batch, scale: float) -> Tensor:
        """Add the gradient of a batch's loss, times a number.

        Parameters
        ----------
        batch : Batch
            Sentence pairs.
        scale : float
            What the loss is multiplied by.

        Returns
        -------
        Tensor
            The summed loss.
        """
        shares = divide_batch(batch, self._num_shares)
        seeds = torch.randint(1 << 62, (len(shares),)).tolist()
        num_threads = torch.get_num_threads()
        try:
            asked = [
                self._threads.submit(self._compute, share, scale, seed)
                for share, seed in zip(shares, seeds, strict=True)
            ]
            wait(asked)
        finally:
            torch.set_num_threads(num_threads)
        found = [each.result() for each in asked]
        for _, gradient in found:
            for parameter, grad in zip(self._parameters, gradient, strict=True):
                if grad is not None and parameter.grad is None:
                    parameter.grad = grad
                elif grad is not None and parameter.grad is not None:
                    parameter.grad += grad
        return torch.stack([loss for loss, _ in found]).sum()

    def _compute(
        self, share: Batch, scale: float, seed: int
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Compute one share's loss and gradient, on one core."""
        torch.set_num_threads(1)
        with own_random_numbers(seed):
            loss = self._compute_loss(share)
            return loss.detach(), torch.autograd.grad(
                loss * scale, self._parameters, allow_unused=True
            )


def count_shares(model: ModelOptions, options: TrainingOptions, device: torch.device) -> int:
    """Say by how many threads the gradient of a batch is computed.

    Parameters
    ----------
    model : ModelOptions
        The model's family and shape.
    options : TrainingOptions
        How it is trained.
    device : torch.device
        Where.

    Returns
    -------
    int
        On a CPU PyTorch's number of threads, but not more than eight, since each share has a
        gradient of its own in memory; one for what is computed on other devices, or depends on
        more than one sentence, or draws random numbers elsewhere than in our dropout.
    """
    divides = isinstance(model, TransformerOptions) and model.reads_packed
    if device.type != "cpu" or not divides or options.objective != "likelihood":
        return 1
    return min(torch.get_num_threads(), MAX_SHARES)


def divide_batch(batch: Batch, num_parts: int) -> list[Batch]:
    """Divide a batch into parts of about equally many tokens.

    Parameters
    ----------
    batch : Batch
        Sentence pairs.
    num_parts : int
        How many parts to make.

    Returns
    -------
    list[Batch]
        The pairs in their order; fewer parts if there are fewer pairs.
    """
    tokens = (batch.source.lengths + batch.target.lengths).numpy()
    parts = []
    for rows in split_rows(np.arange(len(tokens)), tokens, num_parts):
        if len(rows):
            chosen = slice(int(rows[0]), int(rows[-1]) + 1)
            source, target = _cut(batch.source, chosen), _cut(batch.target, chosen)
            num_target_tokens = int(target.lengths.sum())
            num_tokens = int(source.lengths.sum()) + num_target_tokens
            parts.append(Batch(source, target, num_tokens, num_target_tokens))
    return parts


def _cut(sequences: Sequences, rows: slice) -> Sequences:
    """Take some rows, without columns in which they all are padding."""
    lengths = sequences.lengths[rows]
    columns = slice(int(lengths.max()))
    heard = None if sequences.heard is None else sequences.heard[rows, columns].contiguous()
    return Sequences(sequences.ids[rows, columns].contiguous(), lengths, heard)
