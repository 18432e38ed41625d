"""Import Triton where it is installed, and decide whether kernels run."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from dragoman.kernels.processor import can_compile

try:
    if torch.version.cuda is None and "TRITON_INTERPRET" not in os.environ:
        raise ImportError  # no kernel could run, and importing Triton takes a second and 50 MB
    import triton
    import triton.language as tl

    jit: Callable[..., Any] = triton.jit
    has_triton = True
except ImportError:  # builds of PyTorch without CUDA come without it
    tl: Any = SimpleNamespace(constexpr=int)  # type: ignore[no-redef]  # for signatures
    has_triton = False

    def jit(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel unchanged: without Triton it is never called."""
        return function


_switched_off = ContextVar("kernels are switched off", default=False)
_generator: ContextVar[torch.Generator | None] = ContextVar("dropout's generator", default=None)

PROGRAMS_PER_PROCESSOR = 4
SUM_ROWS, SUM_COLUMNS = 64, 16


def uses_kernels(tensor: Tensor) -> bool:
    """Say whether Triton kernels compute with a tensor, or PyTorch does."""
    return tensor.is_cuda and has_triton and not _switched_off.get()


def uses_compiled(*tensors: Tensor | None) -> bool:
    """Say whether functions compiled for the CPU compute with these tensors, or PyTorch does.

    Returns
    -------
    bool
        True for float32 and bfloat16 on a CPU with Numba, unless they are switched off.
    """
    is_ours = all(
        each is None
        or (each.device.type == "cpu" and each.dtype in (torch.float32, torch.bfloat16))
        for each in tensors
    )
    return is_ours and not _switched_off.get() and can_compile()


@contextmanager
def plain_operations() -> Iterator[None]:
    """Switch all kernels off while the context lasts."""
    token = _switched_off.set(True)
    try:
        yield
    finally:
        _switched_off.reset(token)


def next_power(number: int, least: int = 16) -> int:
    """Round up to a power of two, which the sizes of Triton's blocks must be."""
    return max(least, 1 << (number - 1).bit_length())


def working_type(tensor: Tensor) -> torch.dtype:
    """Return the precision in which products of a tensor are computed."""
    device = tensor.device.type
    if device != "meta" and torch.is_autocast_enabled(device):
        return torch.get_autocast_dtype(device)
    return tensor.dtype


def draw_seed(device: torch.device) -> Tensor:
    """Draw a dropout seed from PyTorch's generator, on the device.

    Returns
    -------
    Tensor
        One number. It never travels to the host, so a captured graph draws a new one each time
        it runs, and a resumed run draws the same ones again.
    """
    generator = dropout_generator() if device.type == "cpu" else None
    return torch.randint(1 << 62, (1,), device=device, generator=generator)


@contextmanager
def own_random_numbers(seed: int) -> Iterator[None]:
    """Let this thread's dropout on the CPU draw from a generator of its own."""
    token = _generator.set(torch.Generator().manual_seed(seed))
    try:
        yield
    finally:
        _generator.reset(token)


def dropout_generator() -> torch.Generator | None:
    """Return the generator that this thread's dropout on the CPU draws from; None: PyTorch's."""
    return _generator.get()


def num_programs(num_blocks: int, device: torch.device) -> int:
    """Return the number of programs that share blocks of work and keep partial sums."""
    if device.type != "cuda":
        return min(num_blocks, 4)
    return min(
        num_blocks,
        PROGRAMS_PER_PROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count,
    )


@jit
def kept(seed, places, threshold) -> Tensor:
    """Decide for each position by a hash whether dropout keeps it.

    Notes
    -----
    A hash of position and seed: far cheaper than a cryptographic generator, and random enough for
    dropout.
    """
    value = places.to(tl.uint32) * 0x9E3779B1 + (seed & 0x7FFFFFFF).to(tl.uint32)
    value = (value ^ (value >> 16)) * 0x7FEB352D
    value = (value ^ (value >> 15)) + ((seed >> 31) & 0x7FFFFFFF).to(tl.uint32)
    value = (value ^ (value >> 16)) * 0x846CA68B
    return (value ^ (value >> 16)) >= threshold


def sum_rows(partial: Tensor) -> Tensor:
    """Sum the partial sums of several programs."""
    num_rows, num_columns = partial.shape
    total = partial.new_empty(num_columns)
    _sum_rows_kernel[(-(-num_columns // SUM_COLUMNS),)](
        partial, total, num_rows, num_columns, ROWS=SUM_ROWS, COLUMNS=SUM_COLUMNS, num_warps=4
    )
    return total


@jit
def _sum_rows_kernel(
    partial, total, num_rows, num_columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    """Sum a block of columns over all rows."""
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(0, num_rows, ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < num_rows)[:, None] & (columns < num_columns)[None, :]
        sums += tl.load(
            partial + rows[:, None] * num_columns + columns[None, :], mask=mask, other=0.0
        )
    tl.store(total + columns, tl.sum(sums, 0), mask=columns < num_columns)


def dropout_threshold(share: float) -> int:
    """Return the threshold with which `kept` drops this share of positions."""
    return round(share * (1 << 32))
