"""Add & Norm of tensors on a CPU, called by `dragoman.kernels.training.add_and_norm`."""

from typing import Any

import numpy as np
from torch import Tensor

from dragoman.kernels.training.cpu.arrays import as_array, make_drop, no_array
from dragoman.kernels.training.cpu.norms import normalise_backward, normalise_rows


def normalise(
    states: Tensor,
    update: Tensor | None,
    total: Tensor | None,
    weight: Tensor,
    bias: Tensor | None,
    epsilon: float,
    dropout: float,
    seed: Tensor | None,
    normed: Tensor,
    statistics: Tensor,
) -> None:
    """Add and normalise tensors on a CPU, by `normalise_rows`."""
    normalise_rows(
        as_array(states.flatten(0, -2)),
        no_array(states.dtype, 2) if update is None else as_array(update.flatten(0, -2)),
        no_array(states.dtype, 2) if total is None else as_array(total.flatten(0, -2)),
        as_array(weight),
        no_array(weight.dtype, 1) if bias is None else as_array(bias),
        as_array(normed.flatten(0, -2)),
        as_array(statistics),
        make_drop(dropout, 0 if seed is None else int(seed)),
        np.float32(epsilon),
    )


def go_back(
    states: Tensor,
    update: Tensor | None,
    weight: Tensor,
    statistics: Tensor,
    seed: Tensor | None,
    grads: tuple[Tensor, Tensor | None, Tensor | None],
    ctx: Any,  # noqa: ANN401
    states_grad: Tensor,
    sums: Tensor,
) -> None:
    """Compute the gradients of `normalise`, by `normalise_backward`."""
    grad, other, update_grad = (
        None if each is None else as_array(each.contiguous().flatten(0, -2)) for each in grads
    )
    none = no_array(states.dtype, 2)
    normalise_backward(
        as_array(states.flatten(0, -2)),
        none if update is None else as_array(update.flatten(0, -2)),
        as_array(weight),
        grad,
        none if other is None else other,
        update is None,
        ctx.is_centred,
        as_array(statistics),
        make_drop(ctx.dropout, 0 if seed is None else int(seed)),
        as_array(states_grad.flatten(0, -2)),
        none if update_grad is None else update_grad,
        as_array(sums),
    )
