"""Linear layers for training: fused ReLU, gradients of weights summed in their own precision."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, num_programs, sum_rows, tl, working_type
from dragoman.kernels.training.casts import cast
from dragoman.shapes import Float

ROWS = 32
COLUMNS = 128
NUM_WARPS = 4


def linear(
    states: Float[Tensor, "*positions inputs"], *layers: nn.Linear, rectified: bool = False
) -> Float[Tensor, "*positions outputs"]:
    """Compute xW + b, or max(0, xW + b), for one layer or for several side by side.

    Parameters
    ----------
    states : Float[Tensor, "*positions inputs"]
        x, one vector a position.
    *layers : nn.Linear
        What they are multiplied by, in one product; all with a bias or all without.
    rectified : bool
        Whether what is negative becomes zero; needs a bias.

    Notes
    -----
    On a GPU bias and ReLU are part of cuBLAS's product; in the backward pass the gradient of W is
    summed and written in W's own precision, and one pass both rectifies the gradient and sums it
    for the bias.
    """
    weights = [each.weight for each in layers]
    biases = [each.bias for each in layers if each.bias is not None]
    trains = torch.is_grad_enabled()
    if language.uses_kernels(states) or (trains and language.uses_compiled(states, *weights)):
        return _Linear.apply(states, rectified, working_type(states), *weights, *biases)
    found = functional.linear(states, _join(weights), _join(biases) if biases else None)
    return found.relu() if rectified else found


def _join(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tuple(tensors))


class _Linear(torch.autograd.Function):
    """Autograd function of the product."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        states: Tensor,
        rectified: bool,
        dtype: torch.dtype,
        *tensors: Tensor,
    ) -> Tensor:
        """Multiply, add and rectify."""
        weights = [each for each in tensors if each.dim() > 1]
        biases = [each for each in tensors if each.dim() == 1]
        flat = states.to(dtype).reshape(-1, states.size(-1))
        weight = _join([cast(each, dtype) for each in weights])
        if not biases:
            out = flat @ weight.t()
        else:
            bias = _join([cast(each, dtype) for each in biases])
            if rectified and flat.is_cuda:
                out = torch._addmm_activation(bias, flat, weight.t())
            else:
                out = torch.addmm(bias, flat, weight.t())
                out = out.relu_() if rectified else out
        ctx.save_for_backward(flat, weight, out if rectified else None)
        ctx.shape, ctx.dtypes = states.shape, (states.dtype, tensors[0].dtype)
        ctx.sizes, ctx.has_bias = [len(each) for each in weights], bool(biases)
        return out.view(*states.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Rectify the gradient, and multiply."""
        flat, weight, out = ctx.saved_tensors
        grad = grad.reshape(-1, grad.size(-1)).contiguous()
        bias_grads: Sequence[Tensor] = ()
        if ctx.has_bias:
            grad, sums = sum_gradient(grad, out)
            bias_grads = sums.to(ctx.dtypes[1]).split(ctx.sizes)
        states_grad = (grad @ weight).view(ctx.shape).to(ctx.dtypes[0])
        weight_grads = weight_gradient(grad, flat, ctx.dtypes[1]).split(ctx.sizes)
        return states_grad, None, None, *weight_grads, *bias_grads


def weight_gradient(
    grad: Float[Tensor, "rows outputs"],
    states: Float[Tensor, "rows inputs"],
    dtype: torch.dtype,
    into: Float[Tensor, "outputs inputs"] | None = None,
) -> Float[Tensor, "outputs inputs"]:
    """Compute the gradient of a weight matrix, summed in its own precision.

    Returns
    -------
    Float[Tensor, "outputs inputs"]
        The gradient; `into`, changed, if that was given. Where the library can, products of
        half precision are written in full without a rounding in between.
    """
    if grad.is_cuda and dtype == torch.float32 and grad.dtype == torch.bfloat16:
        if into is None:
            return torch.mm(grad.t(), states, out_dtype=dtype)
        return torch.addmm(into, grad.t(), states, out_dtype=dtype, out=into)
    if into is None:
        return (grad.t() @ states).to(dtype)
    if into.dtype == grad.dtype:
        return into.addmm_(grad.t(), states)
    return into.add_(grad.t() @ states)


def sum_gradient(
    grad: Float[Tensor, "rows columns"], out: Float[Tensor, "rows columns"] | None
) -> tuple[Float[Tensor, "rows columns"], Float[Tensor, "columns"]]:
    """Sum a gradient over the rows, masked by a ReLU's output if there is one."""
    if not grad.is_cuda:
        return _sum_gradient_on_cpu(grad, out)
    num_rows, num_columns = grad.shape
    passed = grad if out is None else torch.empty_like(grad)
    columns = min(COLUMNS, next_power(num_columns))
    num_column_blocks = -(-num_columns // columns)
    programs = max(1, num_programs(-(-num_rows // ROWS), grad.device) // num_column_blocks)
    sums = grad.new_empty(programs, num_columns, dtype=torch.float32)
    _sum_kernel[(programs, num_column_blocks)](
        grad, out, passed, sums, num_rows, num_columns, programs,
        ROWS=ROWS, COLUMNS=columns, IS_RECTIFIED=out is not None, num_warps=NUM_WARPS,
    )  # fmt: skip
    return passed, sum_rows(sums)


def _sum_gradient_on_cpu(grad: Tensor, out: Tensor | None) -> tuple[Tensor, Tensor]:
    """Run the compiled function."""
    from dragoman.kernels.training.cpu.arrays import as_array, no_array
    from dragoman.kernels.training.cpu.norms import rectify_and_sum

    sums = torch.zeros(grad.size(1))
    passed = grad if out is None else torch.empty_like(grad)
    rectified = no_array(grad.dtype, 2) if out is None else as_array(out)
    rectify_and_sum(as_array(grad), rectified, as_array(passed), as_array(sums))
    return passed, sums


@jit
def _sum_kernel(
    grad, out, passed, sums, num_rows, num_columns, programs,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, IS_RECTIFIED: tl.constexpr,
):  # fmt: skip
    """Sum a block of columns over every n-th block of rows."""
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_column = columns < num_columns
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(tl.program_id(0) * ROWS, num_rows, programs * ROWS):
        rows = start + tl.arange(0, ROWS)
        mask = (rows < num_rows)[:, None] & is_column[None, :]
        places = rows.to(tl.int64)[:, None] * num_columns + columns[None, :]
        values = tl.load(grad + places, mask=mask, other=0.0)
        if IS_RECTIFIED:
            is_positive = tl.load(out + places, mask=mask, other=0.0) > 0
            values = tl.where(is_positive, values, 0.0)
            tl.store(passed + places, values, mask=mask)
        total += values.to(tl.float32)
    tl.store(sums + tl.program_id(0) * num_columns + columns, tl.sum(total, 0), mask=is_column)
