"""The residual connection in one kernel: dropout, add, normalise.

With norms after the sub-layers (`add_and_norm`) the normalised sum is the residual stream. With
norms before them (`add_then_norm`) the sum is, and the norm is that of the next sub-layer.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.language import (
    draw_seed,
    dropout_threshold,
    jit,
    kept,
    next_power,
    num_programs,
    sum_rows,
    tl,
)
from dragoman.shapes import Float

BLOCK_ELEMENTS = 2048
NUM_WARPS = 4


def add_and_norm(
    states: Float[Tensor, "... model_dim"],
    update: Float[Tensor, "... model_dim"],
    weight: Float[Tensor, "model_dim"],
    bias: Float[Tensor, "model_dim"] | None,
    epsilon: float,
    dropout: float,
) -> tuple[Float[Tensor, "... model_dim"], Float[Tensor, "... model_dim"]]:
    """Add a sub-layer's output, after dropout, to the residual stream, and normalise the sum.

    Parameters
    ----------
    states : Float[Tensor, "... model_dim"]
        The residual stream.
    update : Float[Tensor, "... model_dim"]
        What is added to it.
    weight : Float[Tensor, "model_dim"]
        The gain of each entry.
    bias : Float[Tensor, "model_dim"] | None
        What is added to each entry; None: there is no mean taken away either, as RMS
        normalisation has it.
    epsilon : float
        What is added to the variance, or to the mean square.
    dropout : float
        Share of the update that is dropped.

    Returns
    -------
    tuple[Float[Tensor, "... model_dim"], Float[Tensor, "... model_dim"]]
        The same numbers twice, for two readers: the next sub-layer, and the residual connection
        around it. They are in the precision of the residual stream; sums and statistics are in
        float32.

    Notes
    -----
    Each vector is read once and written once. On the way back what was dropped is drawn again from
    the same seed, so no mask is kept, and the gradients of the two readers are added where they
    are read, which saves a pass over both.
    """
    if language.uses_kernels(states) or language.uses_compiled(states, update, weight):
        return _AddAndNorm.apply(states, update, weight, bias, epsilon, dropout)
    _, normed = plain_add_then_norm(states, update, weight, bias, epsilon, dropout)
    return normed, normed


def add_then_norm(
    states: Float[Tensor, "... model_dim"],
    update: Float[Tensor, "... model_dim"] | None,
    weight: Float[Tensor, "model_dim"],
    bias: Float[Tensor, "model_dim"] | None,
    epsilon: float,
    dropout: float,
) -> tuple[Float[Tensor, "... model_dim"], Float[Tensor, "... model_dim"]]:
    """Add a sub-layer's output to the residual stream, and normalise the sum for the next one.

    Notes
    -----
    As in `add_and_norm`, all is one pass, and the gradients of the two outputs are added where they
    are read. Of the vectors only the sum is kept for the way back.
    """
    if language.uses_kernels(states) or language.uses_compiled(states, update, weight):
        return _AddThenNorm.apply(states, update, weight, bias, epsilon, dropout)
    return plain_add_then_norm(states, update, weight, bias, epsilon, dropout)


def plain_add_then_norm(
    states: Float[Tensor, "... model_dim"],
    update: Float[Tensor, "... model_dim"] | None,
    weight: Float[Tensor, "model_dim"],
    bias: Float[Tensor, "model_dim"] | None,
    epsilon: float,
    dropout: float,
) -> tuple[Float[Tensor, "... model_dim"], Float[Tensor, "... model_dim"]]:
    """Compute the same with PyTorch's operations."""
    total = states if update is None else states + functional.dropout(update, dropout)
    if bias is None:
        return total, functional.rms_norm(total, weight.shape, weight, epsilon)
    return total, functional.layer_norm(total, weight.shape, weight, bias, epsilon)


class _AddAndNorm(torch.autograd.Function):
    """Autograd function of the post-norm kernels."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        states: Tensor,
        update: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        epsilon: float,
        dropout: float,
    ) -> tuple[Tensor, Tensor]:
        """Normalise the sums."""
        states, update = states.contiguous(), update.contiguous()
        seed = draw_seed(states.device) if dropout else None
        normed, statistics = _normalise(states, update, None, weight, bias, epsilon, dropout, seed)
        ctx.save_for_backward(states, update, weight, statistics, seed)
        ctx.dropout, ctx.is_centred = dropout, bias is not None
        ctx.set_materialize_grads(False)
        return normed, normed.view_as(normed)

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None, other: Tensor | None) -> Any:  # noqa: ANN401
        """Compute the gradients of both summands, gain and bias."""
        if grad is None:
            grad, other = other, None
        assert grad is not None
        states, update, weight, statistics, seed = ctx.saved_tensors
        update_grad = torch.empty_like(update)
        states_grad, *own = _go_back(
            states, update, weight, statistics, seed, (grad, other, update_grad), ctx
        )
        return states_grad, update_grad, *own, None, None


class _AddThenNorm(torch.autograd.Function):
    """Autograd function of the pre-norm kernels, which return the sum beside its norm."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        states: Tensor,
        update: Tensor | None,
        weight: Tensor,
        bias: Tensor | None,
        epsilon: float,
        dropout: float,
    ) -> tuple[Tensor, Tensor]:
        """Add, keep the sums, and normalise them."""
        states = states.contiguous()
        dropout = 0.0 if update is None else dropout
        update = None if update is None else update.contiguous()
        seed = draw_seed(states.device) if dropout else None
        total = torch.empty_like(states)
        normed, statistics = _normalise(states, update, total, weight, bias, epsilon, dropout, seed)
        ctx.save_for_backward(total, weight, statistics, seed)
        ctx.dropout, ctx.is_centred = dropout, bias is not None
        ctx.update_type = None if update is None else update.dtype
        ctx.set_materialize_grads(False)
        return total, normed

    @staticmethod
    def backward(ctx: Any, other: Tensor | None, grad: Tensor | None) -> Any:  # noqa: ANN401
        """Compute the gradients of both summands, gain and bias."""
        total, weight, statistics, seed = ctx.saved_tensors
        grad = torch.zeros_like(total) if grad is None else grad
        update_grad = None
        if ctx.update_type is not None:
            update_grad = torch.empty_like(total, dtype=ctx.update_type)
        states_grad, *own = _go_back(
            total, None, weight, statistics, seed, (grad, other, update_grad), ctx
        )
        return states_grad, update_grad, *own, None, None


def _normalise(
    states: Tensor,
    update: Tensor | None,
    total: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    epsilon: float,
    dropout: float,
    seed: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Run the forward kernel; sums are written if there is a tensor for them."""
    num_rows, dim = states.numel() // states.size(-1), states.size(-1)
    normed = torch.empty_like(states)
    statistics = states.new_empty(2, num_rows, dtype=torch.float32)
    if not states.is_cuda:
        from dragoman.kernels.training.cpu.add_and_norm import normalise

        normalise(states, update, total, weight, bias, epsilon, dropout, seed, normed, statistics)
        return normed, statistics
    block = next_power(dim)
    rows = max(1, BLOCK_ELEMENTS // block)
    _forward_kernel[(-(-num_rows // rows),)](
        states, update, total, weight, bias, normed, statistics, seed, dropout_threshold(dropout),
        1 / (1 - dropout), num_rows, epsilon, DIM=dim, BLOCK=block, ROWS=rows,
        IS_CENTRED=bias is not None, DROPS=dropout > 0, HAS_UPDATE=update is not None,
        KEEPS_SUM=total is not None, num_warps=NUM_WARPS,
    )  # fmt: skip
    return normed, statistics


def _go_back(
    states: Tensor,
    update: Tensor | None,
    weight: Tensor,
    statistics: Tensor,
    seed: Tensor | None,
    grads: tuple[Tensor, Tensor | None, Tensor | None],
    ctx: Any,  # noqa: ANN401
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Run the backward kernel: gradients of states, gain and bias, and of the update if any.

    Without an update the states are the sums, and the other gradient is that of the sums.
    """
    grad, other, update_grad = grads
    other = None if other is None else other.contiguous()
    num_rows, dim = statistics.size(1), states.size(-1)
    states_grad = torch.empty_like(states)
    if not states.is_cuda:
        sums = torch.zeros(2, dim)
        from dragoman.kernels.training.cpu.add_and_norm import go_back

        go_back(
            states, update, weight, statistics, seed, (grad, other, update_grad), ctx,
            states_grad, sums,
        )  # fmt: skip
        return states_grad, sums[0], sums[1] if ctx.is_centred else None
    block = next_power(dim)
    rows = max(1, BLOCK_ELEMENTS // block)
    programs = num_programs(-(-num_rows // rows), states.device)
    sums = states.new_empty(programs, 2 * dim, dtype=torch.float32)
    _backward_kernel[(programs,)](
        states, update, weight, grad.contiguous(), other, states_grad, update_grad, sums,
        statistics, seed, dropout_threshold(ctx.dropout), 1 / (1 - ctx.dropout), num_rows,
        programs, DIM=dim, BLOCK=block, ROWS=rows, IS_CENTRED=ctx.is_centred,
        DROPS=ctx.dropout > 0, HAS_OTHER=other is not None, HAS_SUM=update is None,
        HAS_UPDATE=update_grad is not None, num_warps=NUM_WARPS,
    )  # fmt: skip
    weight_grad, bias_grad = sum_rows(sums).to(weight.dtype).view(2, dim).unbind()
    return states_grad, weight_grad, bias_grad if ctx.is_centred else None


@jit
def _dropped(update, seed, places, mask, threshold, scale, DROPS: tl.constexpr):
    """Load a block of the update and apply dropout."""
    values = tl.load(update + places, mask=mask, other=0.0).to(tl.float32)
    if DROPS:
        values = tl.where(kept(tl.load(seed), places, threshold), values * scale, 0.0)
    return values


@jit
def _forward_kernel(
    states, update, added, weight, bias, normed, statistics, seed, threshold, scale, num_rows,
    epsilon, DIM: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    IS_CENTRED: tl.constexpr, DROPS: tl.constexpr, HAS_UPDATE: tl.constexpr,
    KEEPS_SUM: tl.constexpr,
):  # fmt: skip
    """Normalise a few rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    mask = (rows < num_rows)[:, None] & (columns < DIM)[None, :]
    places = rows[:, None] * DIM + columns[None, :]
    total = tl.load(states + places, mask=mask, other=0.0).to(tl.float32)
    if HAS_UPDATE:
        total += _dropped(update, seed, places, mask, threshold, scale, DROPS)
    if KEEPS_SUM:
        rounded = total.to(added.dtype.element_ty)
        tl.store(added + places, rounded, mask=mask)
        total = rounded.to(tl.float32)
    if IS_CENTRED:
        mean = tl.sum(total, 1) / DIM
        tl.store(statistics + rows, mean, mask=rows < num_rows)
        total = tl.where(mask, total - mean[:, None], 0.0)
    spread = tl.rsqrt(tl.sum(total * total, 1) / DIM + epsilon)
    tl.store(statistics + num_rows + rows, spread, mask=rows < num_rows)
    gain = tl.load(weight + columns, mask=columns < DIM, other=0.0).to(tl.float32)
    total = total * spread[:, None] * gain[None, :]
    if IS_CENTRED:
        total += tl.load(bias + columns, mask=columns < DIM, other=0.0).to(tl.float32)[None, :]
    tl.store(normed + places, total.to(normed.dtype.element_ty), mask=mask)


@jit
def _backward_kernel(
    states, update, weight, grad, other, states_grad, update_grad, sums, statistics, seed,
    threshold, scale, num_rows, programs,
    DIM: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    IS_CENTRED: tl.constexpr, DROPS: tl.constexpr, HAS_OTHER: tl.constexpr,
    HAS_SUM: tl.constexpr, HAS_UPDATE: tl.constexpr,
):  # fmt: skip
    """Process every n-th block of rows; partial sums over rows are written at the end."""
    columns = tl.arange(0, BLOCK)
    is_column = columns < DIM
    gain = tl.load(weight + columns, mask=is_column, other=0.0).to(tl.float32)
    weight_sums = tl.zeros([ROWS, BLOCK], tl.float32)
    bias_sums = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in range(tl.program_id(0) * ROWS, num_rows, programs * ROWS):
        rows = start + tl.arange(0, ROWS)
        is_row = rows < num_rows
        mask = is_row[:, None] & is_column[None, :]
        places = rows[:, None] * DIM + columns[None, :]
        total = tl.load(states + places, mask=mask, other=0.0).to(tl.float32)
        if not HAS_SUM:
            total += _dropped(update, seed, places, mask, threshold, scale, DROPS)
        out_grad = tl.load(grad + places, mask=mask, other=0.0).to(tl.float32)
        if HAS_OTHER and not HAS_SUM:
            out_grad += tl.load(other + places, mask=mask, other=0.0).to(tl.float32)
        spread = tl.load(statistics + num_rows + rows, mask=is_row, other=0.0)
        if IS_CENTRED:
            total -= tl.load(statistics + rows, mask=is_row, other=0.0)[:, None]
        total = tl.where(mask, total * spread[:, None], 0.0)
        weight_sums += out_grad * total
        bias_sums += out_grad
        inner = out_grad * gain[None, :]
        back = inner - total * (tl.sum(inner * total, 1) / DIM)[:, None]
        if IS_CENTRED:
            back -= (tl.sum(inner, 1) / DIM)[:, None]
        back *= spread[:, None]
        if HAS_OTHER and HAS_SUM:
            back += tl.load(other + places, mask=mask, other=0.0).to(tl.float32)
        tl.store(states_grad + places, back.to(states_grad.dtype.element_ty), mask=mask)
        if HAS_UPDATE:
            if DROPS:
                back = tl.where(kept(tl.load(seed), places, threshold), back * scale, 0.0)
            tl.store(update_grad + places, back.to(update_grad.dtype.element_ty), mask=mask)
    out = sums + tl.program_id(0) * 2 * DIM + columns
    tl.store(out, tl.sum(weight_sums, 0), mask=is_column)
    tl.store(out + DIM, tl.sum(bias_sums, 0), mask=is_column)
