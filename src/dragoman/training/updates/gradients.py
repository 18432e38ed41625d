"""Gradients of batches: computed eagerly, by CPU threads, or by replaying a CUDA graph."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.data.packing import Capacity, PackedBatch
from dragoman.kernels.language import can_compile, has_triton, plain_operations, working_type
from dragoman.kernels.training.casts import cast_together
from dragoman.models.families import ModelOptions
from dragoman.models.options import TransformerOptions
from dragoman.training.options import TrainingOptions
from dragoman.training.updates.cpu_data_parallel import ThreadedGradients, batched
from dragoman.training.updates.precision import use_onednn

NUM_WARM_UPS = 2
MAX_GRAPHS = 4


class Gradients:
    """Accumulates the gradients of batches in the weights.

    Parameters
    ----------
    step : nn.Module
        Model and loss; called with a batch, gives the summed loss.
    options : TrainingOptions
        For the precision.
    device : torch.device
        Where the weights are.
    captures : bool
        Whether packed batches on a CUDA device are captured as graphs; weights sharded among
        processes cannot be.
    num_threads : int
        Threads of a CPU that compute batches in parallel: see `count_threads`.

    Notes
    -----
    Packed batches have one shape for a whole run, so their computation can be captured once and
    replayed: hundreds of kernels are launched as one, and the host runs ahead.
    """

    def __init__(
        self,
        step: nn.Module,
        options: TrainingOptions,
        device: torch.device,
        *,
        captures: bool = True,
        num_threads: int = 1,
    ) -> None:
        self._step = step
        self._options = options
        self._device = device
        self._captures = captures and device.type == "cuda"
        if device.type == "cpu":
            use_onednn(is_wanted=options.precision == "float32-onednn")
        self._parameters = [each for each in step.parameters() if each.requires_grad]
        self._graphs: dict[Capacity, _CapturedGraph] = {}
        self._threads = None
        if num_threads > 1:
            self._threads = ThreadedGradients(self._compute_loss, self._parameters, num_threads)

    def __call__(self, batches: Sequence[Batch | PackedBatch], num_target_tokens: float) -> Tensor:
        """Add the gradient of some batches' loss, divided by the target tokens of the update."""
        scale = 1 / num_target_tokens
        if self._threads is not None:
            losses = [self._threads(some, scale) for some in batched(batches, self._threads.number)]
        else:
            losses = [self._add(batch, scale) for batch in batches]
        return sum(losses, start=torch.zeros((), device=self._device))

    def _add(self, batch: Batch | PackedBatch, scale: float) -> Tensor:
        """Add the gradient of one batch."""
        if not isinstance(batch, PackedBatch) or not self._captures:
            return self._compute(batch.to(self._device), scale)
        graph = self._graphs.get(batch.capacity)
        if graph is None and len(self._graphs) == MAX_GRAPHS:
            return self._compute(batch.to(self._device), scale)
        if graph is None:
            graph = _CapturedGraph(self._compute, batch.to(self._device), self._parameters)
            self._graphs[batch.capacity] = graph
        return graph.replay(batch, scale)

    def forget(self) -> None:
        """Release the memory of captured graphs; they are captured anew when needed."""
        self._graphs.clear()

    def _compute(self, batch: Batch | PackedBatch, scale: float | Tensor) -> Tensor:
        """Compute loss and gradient eagerly."""
        loss = self._compute_loss(batch)
        (loss * scale).backward()
        return loss.detach()

    def _compute_loss(self, batch: Batch | PackedBatch) -> Tensor:
        with precision_context(self._options, self._device), self._kernels(batch):
            return self._step(batch)

    def _kernels(self, batch: Batch | PackedBatch) -> AbstractContextManager:
        """Disable our kernels if the options say so, or cast the weights once for a whole batch."""
        if self._options.kernels == "off":
            return plain_operations()
        if isinstance(batch, PackedBatch) and self._captures:
            return cast_together(self._parameters, working_type(self._parameters[0]))
        return nullcontext()


class _CapturedGraph:
    """A CUDA graph that computes the gradients of batches of one shape."""

    def __init__(
        self,
        compute: Callable[[PackedBatch, Tensor], Tensor],
        batch: PackedBatch,
        parameters: list[nn.Parameter],
    ) -> None:
        self._parameters = parameters
        self._numbers = batch.numbers
        self._scale = torch.ones((), device=batch.numbers.device)
        before = [each.grad for each in parameters]
        random_state = torch.cuda.get_rng_state()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # one-time initialisation must happen before the capture
            for _ in range(NUM_WARM_UPS):
                self._set_grads([None] * len(parameters))
                compute(batch, self._scale)
        torch.cuda.current_stream().wait_stream(aside)
        self._set_grads([None] * len(parameters))
        torch.cuda.set_rng_state(random_state)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._loss = compute(batch, self._scale)
        self._grads = [each.grad for each in parameters if each.grad is not None]
        self._set_grads(before)

    def replay(self, batch: PackedBatch, scale: float) -> Tensor:
        """Replay the graph for another batch, and add its gradients to those before."""
        before = [each.grad for each in self._parameters if each.grad is not None]
        if before and before[0] is self._grads[0]:
            before = [each.clone() for each in before]
        self._numbers.copy_(batch.numbers, non_blocking=True)
        self._scale.fill_(scale)
        self._graph.replay()
        if before:
            torch._foreach_add_(before, self._grads)
        self._set_grads(before or self._grads)
        return self._loss.clone()

    def _set_grads(self, grads: Sequence[Tensor | None]) -> None:
        for parameter, grad in zip(self._parameters, grads, strict=True):
            parameter.grad = grad


def can_pack(model: ModelOptions, options: TrainingOptions, device: torch.device) -> bool:
    """Tell whether a model is trained on packed batches.

    Returns
    -------
    bool
        True if the model reads them, the objective asks for nothing else, and our kernels, without
        which packing does not pay, can run: on a CUDA device Triton's, on a CPU those that Numba
        compiles.
    """
    is_asked = options.kernels == "auto" and options.objective == "likelihood"
    reads = isinstance(model, TransformerOptions) and model.reads_packed
    is_cpu = device.type == "cpu"
    has_kernels = (device.type == "cuda" and has_triton) or (is_cpu and can_compile())
    return is_asked and reads and has_kernels


def precision_context(options: TrainingOptions, device: torch.device) -> AbstractContextManager:
    """Make the autocast context of the chosen precision."""
    is_half = options.precision == "bfloat16"
    if options.precision == "auto":
        is_half = device.type == "cuda"
    return torch.autocast(device.type, torch.bfloat16) if is_half else nullcontext()
