"""The position-wise feed-forward layer (section 3.3 of the paper), plain or gated."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.kernels.training.dropout import Dropout
from dragoman.kernels.training.linear import linear
from dragoman.shapes import Float

FeedForwardKind = Literal["relu", "swish", "gelu", "gelu-sigmoid", "swiglu", "geglu"]
GATED = ("swiglu", "geglu")


class FeedForward(nn.Module):
    r"""Transform each position by itself: expand, activate or gate, project back.

    Parameters
    ----------
    model_dim : int
        Width of inputs and outputs.
    feed_forward_dim : int
        Width between the linear maps (d_ff), whatever the kind.
    kind : FeedForwardKind
        What happens there.
    dropout : float
        Dropout on what comes out of it, before it is narrowed.

    Notes
    -----
    Equation 2 of the paper: :math:`\max(0, xW_1+b_1)W_2+b_2`. In place of max(0, z), “swish” has
    :math:`\mathrm{SiLU}(z)=z\sigma(z)`, “gelu” :math:`\mathrm{GELU}(z)=z\Phi(z)` and
    “gelu-sigmoid” what Marian calls so, :math:`z\sigma(1.702z)`. Gated (Shazeer, 2020):
    :math:`(g(xW_g+b_g)\circ(xW_1+b_1))W_2+b_2`, where g is SiLU or GELU. The biases are kept as in
    equation 2; Shazeer has none. A gate is a third matrix of the same size: to keep the number of
    parameters, give two thirds of the width.
    """

    def __init__(
        self,
        model_dim: int,
        feed_forward_dim: int,
        *,
        kind: FeedForwardKind = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.kind = kind
        self.gate = nn.Linear(model_dim, feed_forward_dim) if kind in GATED else None
        self.inner = nn.Linear(model_dim, feed_forward_dim)
        self.outer = nn.Linear(feed_forward_dim, model_dim)
        self.dropout = Dropout(dropout)

    def forward(self, states: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... model_dim"]:
        """Apply the layer."""
        inner = linear(states, self.inner, rectified=self.kind == "relu")
        gate = None if self.gate is None else linear(states, self.gate)
        inner = activate(inner, gate, self.kind)
        return linear(self.dropout(inner), self.outer)


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
