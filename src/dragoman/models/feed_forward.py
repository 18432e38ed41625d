"""The position-wise feed-forward layer (section 3.3 of the paper)."""

from jaxtyping import Float
from torch import Tensor, nn

from dragoman.kernels.linear import linear


class FeedForward(nn.Module):
    r"""Transform each position by itself: widen, rectify, narrow.

    Parameters
    ----------
    model_dim : int
        Width of what comes in and goes out.
    feed_forward_dim : int
        Width between the two linear maps (d_ff).

    Notes
    -----
    Equation 2 of the paper: :math:`\max(0, xW_1+b_1)W_2+b_2`.
    """

    def __init__(self, model_dim: int, feed_forward_dim: int) -> None:
        super().__init__()
        self.inner = nn.Linear(model_dim, feed_forward_dim)
        self.outer = nn.Linear(feed_forward_dim, model_dim)

    def forward(self, states: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... model_dim"]:
        """Apply the layer.

        Parameters
        ----------
        states : Float[Tensor, "... model_dim"]
            The positions.

        Returns
        -------
        Float[Tensor, "... model_dim"]
            The positions, transformed.
        """
        inner = linear(states, self.inner.weight, self.inner.bias, rectified=True)
        return linear(inner, self.outer.weight, self.outer.bias)
