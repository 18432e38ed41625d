"""Data parallelism over CPU cores: each thread computes the gradient of its own sentences."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import PackedBatch
from dragoman.kernels.language import own_random_numbers
from dragoman.models.families import ModelOptions
from dragoman.models.options import TransformerOptions
from dragoman.training.options import TrainingOptions

MAX_THREADS = 8


class ThreadedGradients:
    """Computes the gradients of several batches in parallel, one thread each.

    Parameters
    ----------
    compute_loss : Callable[[Batch | PackedBatch], Tensor]
        Computes the summed loss of some pairs. It is called by several threads at once.
    parameters : Sequence[nn.Parameter]
        The weights.
    number : int
        The number of threads.

    Notes
    -----
    Threads within one operation often have too little work each, and wait for one
    another at its end; the gradients of sentences are independent until they are
    added. They are added in a fixed order, and every thread draws dropout from a generator of its
    own, seeded from PyTorch's generator: the same seed and number of threads give the same weights.
    """

    def __init__(
        self,
        compute_loss: Callable[[Batch | PackedBatch], Tensor],
        parameters: Sequence[nn.Parameter],
        number: int,
    ) -> None:
        self.number = number
        self._compute_loss = compute_loss
        self._parameters = parameters
        self._threads = ThreadPoolExecutor(number, thread_name_prefix="gradient")

    def __call__(self, batches: Sequence[Batch | PackedBatch], scale: float) -> Tensor:
        """Add the gradient of the scaled loss of several batches, computed in parallel."""
        seeds = torch.randint(1 << 62, (len(batches),)).tolist()
        num_threads = torch.get_num_threads()
        try:
            asked = [
                self._threads.submit(self._compute, batch, scale, seed)
                for batch, seed in zip(batches, seeds, strict=True)
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
        self, batch: Batch | PackedBatch, scale: float, seed: int
    ) -> tuple[Tensor, tuple[Tensor | None, ...]]:
        """Compute the loss and gradient of one batch on one core."""
        torch.set_num_threads(1)
        with own_random_numbers(seed):
            loss = self._compute_loss(batch)
            return loss.detach(), torch.autograd.grad(
                loss * scale, self._parameters, allow_unused=True
            )


def batched(
    batches: Sequence[Batch | PackedBatch], number: int
) -> Iterator[Sequence[Batch | PackedBatch]]:
    """Yield batches in groups of a given size."""
    for start in range(0, len(batches), number):
        yield batches[start : start + number]


def count_threads(model: ModelOptions, options: TrainingOptions, device: torch.device) -> int:
    """Return the number of threads that compute a gradient in parallel.

    Returns
    -------
    int
        On a CPU PyTorch's number of threads, but at most eight, since each keeps a
        gradient of its own in memory; one on other devices, or where the loss depends on
        more than one sentence, or draws random numbers outside of our dropout.
    """
    divides = isinstance(model, TransformerOptions) and model.reads_packed
    if device.type != "cpu" or not divides or options.objective != "likelihood":
        return 1
    return min(torch.get_num_threads(), MAX_THREADS)
