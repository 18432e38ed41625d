"""Where a word stands: sinusoids (section 3.5 of the paper), or learned vectors (its row E)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from dragoman.errors import DataError


def sinusoidal_positions(
    first: int, count: int, model_dim: int, device: torch.device | None = None
) -> Float[Tensor, "count model_dim"]:
    r"""Compute the paper's position vectors.

    Parameters
    ----------
    first : int
        The first position, counted from 0.
    count : int
        How many positions.
    model_dim : int
        Their width; even.
    device : torch.device | None
        Where the tensor shall live; None: where PyTorch makes new tensors.

    Returns
    -------
    Float[Tensor, "count model_dim"]
        One vector a position, sine and cosine interleaved.

    Notes
    -----
    :math:`PE_{pos,2i}=\sin(pos/10000^{2i/d})` and :math:`PE_{pos,2i+1}=\cos(pos/10000^{2i/d})`.
    Computed in double precision, so that far positions are exact, and on the host, since not
    every device has doubles.
    """
    host = None if device is None else torch.device("cpu")
    positions = torch.arange(first, first + count, dtype=torch.float64, device=host)
    exponents = torch.arange(0, model_dim, 2, dtype=torch.float64, device=host) / model_dim
    angles = positions[:, None] / 10_000**exponents
    table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    return table.to(device=device, dtype=torch.float32)


class SinusoidalPositions(nn.Module):
    """The paper's sinusoids, for sequences of any length.

    Parameters
    ----------
    model_dim : int
        Width of the vectors.
    """

    table: Tensor

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.model_dim = model_dim
        table = sinusoidal_positions(0, 512, model_dim)
        self.register_buffer("table", table, persistent=False)

    def forward(self, first: int, count: int) -> Float[Tensor, "count model_dim"]:
        """Return the vectors of some positions.

        Parameters
        ----------
        first : int
            The first position.
        count : int
            How many.

        Returns
        -------
        Float[Tensor, "count model_dim"]
            One vector a position.
        """
        if first + count > len(self.table):
            rows = 2 * (first + count)
            table = sinusoidal_positions(0, rows, self.model_dim, self.table.device)
            self.table = table.to(self.table.dtype)
        return self.table[first : first + count]


class LearnedPositions(nn.Module):
    """A vector for each position, learnt like a word's; it ends where its table ends.

    Parameters
    ----------
    max_positions : int
        Rows of the table.
    model_dim : int
        Width of the vectors.
    """

    def __init__(self, max_positions: int, model_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_positions, model_dim))

    def forward(self, first: int, count: int) -> Float[Tensor, "count model_dim"]:
        """Return the vectors of some positions.

        Parameters
        ----------
        first : int
            The first position.
        count : int
            How many.

        Returns
        -------
        Float[Tensor, "count model_dim"]
            One vector a position.
        """
        if first + count > len(self.weight):
            raise DataError(
                f"a sequence of {first + count} subwords is longer than the {len(self.weight)} "
                "learned positions of the model; lower max_length or raise max_positions"
            )
        return self.weight[first : first + count]
