"""Activation functions of a feed-forward layer."""

import torch
from torch import Tensor
from torch.nn import functional


def activate(inner: Tensor, gate: Tensor | None, kind: str) -> Tensor:
    """Apply the activation between the linear maps; ReLU is part of the first map's kernel."""
    if kind == "swish":
        return functional.silu(inner)
    if kind == "gelu":
        return functional.gelu(inner)
    if kind == "gelu-sigmoid":
        return inner * torch.sigmoid(1.702 * inner)
    if gate is None:
        return inner
    return (functional.silu(gate) if kind == "swiglu" else functional.gelu(gate)) * inner
