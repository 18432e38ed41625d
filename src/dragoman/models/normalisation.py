"""Residual connection, dropout and layer normalisation: the “Add & Norm” of figure 1."""

from collections.abc import Callable
from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn


class AddAndNorm(nn.Module):
    r"""Wrap a sub-layer in a residual connection and a normalisation.

    Parameters
    ----------
    model_dim : int
        Width of the residual stream.
    dropout : float
        Share of the sub-layer's output that is dropped.
    position : Literal["post", "pre"]
        Where the normalisation stands.

    Notes
    -----
    Post-norm, the paper's: :math:`\mathrm{LayerNorm}(x+\mathrm{Dropout}(\mathrm{Sublayer}(x)))`.
    Pre-norm: :math:`x+\mathrm{Dropout}(\mathrm{Sublayer}(\mathrm{LayerNorm}(x)))`, which trains
    deep stacks without warm-up. Layer normalisation looks at one position of one sentence alone,
    unlike batch normalisation, to which one of the notes likens it.
    """

    def __init__(self, model_dim: int, *, dropout: float, position: Literal["post", "pre"]) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(model_dim)
        self.dropout = nn.Dropout(dropout)
        self.position = position

    def forward(
        self,
        states: Float[Tensor, "batch length model_dim"],
        sublayer: Callable[[Tensor], Tensor],
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the sub-layer within its residual connection.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The residual stream.
        sublayer : Callable[[Tensor], Tensor]
            What is added to it.

        Returns
        -------
        Float[Tensor, "batch length model_dim"]
            The residual stream after it.
        """
        if self.position == "pre":
            return states + self.dropout(sublayer(self.norm(states)))
        return self.norm(states + self.dropout(sublayer(states)))
