"""The simpler simple recurrent unit: a cell in place of the decoder's self-attention."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.shapes import Float, Int


class CellState(NamedTuple):
    """Cell state of each hypothesis."""

    cell: Float[Tensor, "rows model_dim"]

    def rows(self, chosen: Int[Tensor, "rows"], length: int) -> "CellState":
        """Copy the cells of some hypotheses."""
        del length
        return CellState(self.cell[chosen])


class SSRU(nn.Module):
    r"""Simpler simple recurrent unit (Kim et al., 2019).

    Parameters
    ----------
    model_dim : int
        Width of inputs and outputs.

    Notes
    -----
    :math:`f_t=\sigma(W_f x_t+b_f)`, :math:`c_t=f_t\odot c_{t-1}+(1-f_t)\odot Wx_t`, and
    :math:`\max(0, c_t)` goes out. One word more costs O(d²) and no cache that grows, which is why
    small models that translate on phones have it. In training, all cells are found in log₂(n)
    steps: two neighbouring steps of the recurrence are one step with :math:`f=f_2f_1` and
    :math:`u=f_2u_1+u_2`.
    """

    def __init__(self, model_dim: int) -> None:
        super().__init__()
        self.forget = nn.Linear(model_dim, model_dim)
        self.update = nn.Linear(model_dim, model_dim, bias=False)

    def attend(
        self, states: Float[Tensor, "batch length model_dim"], lengths: Int[Tensor, "batch"] | None
    ) -> Float[Tensor, "batch length model_dim"]:
        """Process all tokens at once."""
        del lengths
        return scan(*self._gates(states)).relu().to(states.dtype)

    def start(self, num_rows: int, capacity: int, like: Float[Tensor, "..."]) -> CellState:
        """Make empty cells."""
        del capacity
        dtype = torch.promote_types(like.dtype, torch.float32)
        width = self.update.out_features
        return CellState(torch.zeros(num_rows, width, dtype=dtype, device=like.device))

    def step(
        self, states: Float[Tensor, "rows 1 model_dim"], cache: CellState, length: int
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], CellState]:
        """Process one more token."""
        del length
        forget, update = self._gates(states)
        cell = forget[:, 0] * cache.cell + update[:, 0]
        return cell.relu().to(states.dtype).unsqueeze(1), CellState(cell)

    def _gates(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Compute forget gate and update, in at least float32."""
        exact = torch.promote_types(states.dtype, torch.float32)
        forget = self.forget(states).to(exact).sigmoid()
        return forget, (1 - forget) * self.update(states).to(exact)


def scan(
    forget: Float[Tensor, "batch length dim"], update: Float[Tensor, "batch length dim"]
) -> Float[Tensor, "batch length dim"]:
    """Compute c[t] = forget[t] · c[t − 1] + update[t] for all t, in log₂(length) steps."""
    step, length = 1, forget.size(1)
    while step < length:
        more = forget[:, step:] * update[:, :-step]
        update = torch.cat([update[:, :step], update[:, step:] + more], dim=1)
        kept = forget[:, step:] * forget[:, :-step]
        forget = torch.cat([forget[:, :step], kept], dim=1)
        step *= 2
    return update
