"""Measure the cost of a computation: operations, time, memory, longest dependency chain."""

import time
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


def count_operations(compute: Callable[[], Tensor]) -> int:
    """Count the floating-point operations of the products in a computation."""
    with FlopCounterMode(display=False) as counter:
        compute()
    return counter.get_total_flops()


def measure_seconds(compute: Callable[[], object], *, repeats: int) -> float:
    """Measure the undisturbed (shortest) time of a computation.

    Returns
    -------
    float
        The shortest time in seconds: whatever else the machine does only ever adds to it.
    """
    compute()
    best = float("inf")
    for _ in range(repeats):
        _wait()
        began = time.perf_counter()
        compute()
        _wait()
        best = min(best, time.perf_counter() - began)
    return best


def measure_peak_bytes(compute: Callable[[], object], device: torch.device) -> int:
    """Measure the peak memory of a computation, beyond what was allocated before.

    Returns
    -------
    int
        Bytes. Of a GPU the allocator tells; elsewhere the tensors that are alive at the same time
        are added up, which leaves out what a kernel uses within itself.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        compute()
        return torch.cuda.max_memory_allocated(device) - before
    with _LivingTensors() as living:
        compute()
    return living.most


def find_longest_chain(result: Tensor) -> int:
    """Find the longest chain of dependent operations in the autograd graph.

    Returns
    -------
    int
        Links of the longest path through the graph that PyTorch kept for the way back.
    """
    assert result.grad_fn is not None
    depths: dict[Any, int] = {}
    waiting: list[Any] = [result.grad_fn]
    while waiting:
        node = waiting[-1]
        before = [each for each, _ in node.next_functions if each is not None]
        unknown = [each for each in before if each not in depths]
        if unknown:
            waiting += unknown
            continue
        waiting.pop()
        depths[node] = 1 + max((depths[each] for each in before), default=0)
    return depths[result.grad_fn]


def _wait() -> None:
    """Synchronise with the GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class _LivingTensors(TorchDispatchMode):
    """Tracks the bytes of all live tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._known: set[int] = set()

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,  # noqa: ANN401
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        result = func(*args, **(kwargs or {}))
        given = {_storage(each) for each in tree_leaves((args, kwargs)) if _is_tensor(each)}
        for each in tree_leaves(result):
            if _is_tensor(each) and _storage(each) not in self._known | given:
                storage = each.untyped_storage()
                key, size = storage._cdata, storage.nbytes()
                self._known.add(key)
                self.now += size
                self.most = max(self.most, self.now)
                weakref.finalize(storage, self._forget, key, size)
        return result

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self.now -= size


def _is_tensor(value: object) -> bool:
    return isinstance(value, Tensor)


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
