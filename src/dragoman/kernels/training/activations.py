"""What happens between the linear maps of a feed-forward layer."""

import torch
from torch import Tensor
from torch.nn import functional


def activate(inner: Tensor, gate: Tensor | None, kind: str) -> Tensor:
    """Compute what happens between the linear maps, but for max(0, ·), which goes with the first.

    Notes
    -----
    Written so that it can be part of a script: see `dragoman.kernels.scripts`.
    """
    if kind == "swish":
        return functional.silu(inner)
    if kind == "gelu":
        return functional.gelu(inner)
    if kind == "gelu-sigmoid":
        return inner * torch.sigmoid(1.702 * inner)
    if gate is None:
        return inner
    return (functional.silu(gate) if kind == "swiglu" else functional.gelu(gate)) * inner
