"""Recurrent cells: plain RNN, GRU and LSTM."""

import math
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.shapes import Float

CellState = tuple[Tensor, ...]


class RNNCell(nn.Module):
    r"""The plain recurrent cell.

    Parameters
    ----------
    input_dim : int
        Width of the inputs.
    hidden_dim : int
        Width of the state.

    Notes
    -----
    :math:`h_t = \tanh(W x_t + U h_{t-1} + b)`. There is one bias vector, where PyTorch's layers
    have two that are only ever added: a layer has :math:`n(m+n+1)` weights.
    """

    num_states = 1

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.weight_input, self.weight_hidden, self.bias = _make_weights(1, input_dim, hidden_dim)

    def project(self, inputs: Float[Tensor, "*places input_dim"]) -> Float[Tensor, "*places gates"]:
        """Project the inputs of all tokens at once."""
        return functional.linear(inputs, self.weight_input, self.bias)

    def forward(self, projected: Float[Tensor, "*places gates"], state: CellState) -> CellState:
        """Process one token."""
        (hidden,) = state
        after = torch.tanh(projected + functional.linear(hidden, self.weight_hidden))
        return (after.to(hidden.dtype),)

    def start(self, shape: tuple[int, ...], like: Tensor) -> CellState:
        """Make the initial state."""
        return (_zeros(self.weight_hidden, shape, like),)


class GRUCell(nn.Module):
    r"""The gated recurrent unit, in either of the two forms that go by this name.

    Parameters
    ----------
    input_dim : int
        Width of the inputs.
    hidden_dim : int
        Width of the state.
    reset : Literal["after", "before"]
        Whether the reset gate acts after the product with the state, as cuDNN has it, or before, as
        Cho et al. (2014) and Bahdanau et al. (2015) have it.

    Notes
    -----
    With :math:`r_t = \sigma(W_r x_t + U_r h_{t-1} + b_r)` and
    :math:`z_t = \sigma(W_z x_t + U_z h_{t-1} + b_z)`, the candidate is

    * after: :math:`n_t = \tanh(W_n x_t + b_n + r_t \odot U_n h_{t-1})`, what `torch.nn.GRU`
      computes when its second bias is zero;
    * before: :math:`n_t = \tanh(W_n x_t + b_n + U_n (r_t \odot h_{t-1}))`, which needs a second
      product at each word, after the first;

    and :math:`h_t = (1 - z_t) \odot n_t + z_t \odot h_{t-1}`. Bahdanau et al. let z and 1 − z
    change places, which is the same function with the signs of :math:`W_z`, :math:`U_z` and
    :math:`b_z` turned. The weights hold r, z, n in this order. A layer has :math:`3n(m+n+1)`.
    """

    num_states = 1

    def __init__(
        self, input_dim: int, hidden_dim: int, reset: Literal["after", "before"] = "after"
    ) -> None:
        super().__init__()
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.reset = reset
        self.weight_input, self.weight_hidden, self.bias = _make_weights(3, input_dim, hidden_dim)

    def project(self, inputs: Float[Tensor, "*places input_dim"]) -> Float[Tensor, "*places gates"]:
        """Project the inputs of all tokens at once."""
        return functional.linear(inputs, self.weight_input, self.bias)

    def forward(self, projected: Float[Tensor, "*places gates"], state: CellState) -> CellState:
        """Process one token."""
        (hidden,) = state
        input_gates, input_candidate = self._split(projected, dim=-1)
        if self.reset == "after":
            gates, candidate = self._split(functional.linear(hidden, self.weight_hidden), dim=-1)
            reset, update = torch.sigmoid(input_gates + gates).chunk(2, dim=-1)
            candidate = reset * candidate
        else:
            of_gates, of_candidate = self._split(self.weight_hidden, dim=0)
            gates = functional.linear(hidden, of_gates)
            reset, update = torch.sigmoid(input_gates + gates).chunk(2, dim=-1)
            candidate = functional.linear(reset * hidden, of_candidate)
        candidate = torch.tanh(input_candidate + candidate)
        return (candidate + update * (hidden - candidate),)

    def start(self, shape: tuple[int, ...], like: Tensor) -> CellState:
        """Make the initial state."""
        return (_zeros(self.weight_hidden, shape, like),)

    def _split(self, gates: Tensor, dim: int) -> tuple[Tensor, Tensor]:
        """Split the two gates from the candidate."""
        both, candidate = gates.split([2 * self.hidden_dim, self.hidden_dim], dim=dim)
        return both, candidate


class LSTMCell(nn.Module):
    r"""Long short-term memory.

    Parameters
    ----------
    input_dim : int
        Width of the inputs.
    hidden_dim : int
        Width of the state.

    Notes
    -----
    With i, f, o the logistic function and g the hyperbolic tangent of
    :math:`W x_t + U h_{t-1} + b`, each with its own quarter of the weights,
    :math:`c_t = f \odot c_{t-1} + i \odot g` and :math:`h_t = o \odot \tanh(c_t)`. The weights hold
    i, f, g, o in this order. A layer has :math:`4n(m+n+1)`. There are no peepholes.
    """

    num_states = 2

    def __init__(self, input_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.input_dim, self.hidden_dim = input_dim, hidden_dim
        self.weight_input, self.weight_hidden, self.bias = _make_weights(4, input_dim, hidden_dim)

    @property
    def forget_bias(self) -> Float[Tensor, "hidden_dim"]:
        """A view of the forget gate's bias, to be set in place."""
        return self.bias[self.hidden_dim : 2 * self.hidden_dim]

    def project(self, inputs: Float[Tensor, "*places input_dim"]) -> Float[Tensor, "*places gates"]:
        """Project the inputs of all tokens at once."""
        return functional.linear(inputs, self.weight_input, self.bias)

    def forward(self, projected: Float[Tensor, "*places gates"], state: CellState) -> CellState:
        """Process one token."""
        hidden, memory = state
        recurrent = functional.linear(hidden, self.weight_hidden)
        if projected.is_cuda:
            return _fused_gates(projected, recurrent, memory)
        add, forget, new, show = (projected + recurrent).chunk(4, dim=-1)
        memory = torch.sigmoid(forget) * memory + torch.sigmoid(add) * torch.tanh(new)
        return torch.sigmoid(show) * torch.tanh(memory), memory

    def start(self, shape: tuple[int, ...], like: Tensor) -> CellState:
        """Make the initial state."""
        return tuple(_zeros(self.weight_hidden, shape, like) for _ in range(2))


Cell = RNNCell | GRUCell | LSTMCell


def make_cell(kind: Literal["rnn", "gru", "lstm"], input_dim: int, hidden_dim: int) -> Cell:
    """Make a cell of the given kind."""
    match kind:
        case "rnn":
            return RNNCell(input_dim, hidden_dim)
        case "gru":
            return GRUCell(input_dim, hidden_dim)
        case "lstm":
            return LSTMCell(input_dim, hidden_dim)


def _make_weights(
    num_gates: int, input_dim: int, hidden_dim: int
) -> tuple[nn.Parameter, nn.Parameter, nn.Parameter]:
    """Make W, U and b, uniform within ±1/√hidden_dim as in PyTorch; models initialise their own."""
    bound = 1 / math.sqrt(hidden_dim)
    rows = num_gates * hidden_dim
    weights = (
        nn.Parameter(torch.empty(rows, input_dim)),
        nn.Parameter(torch.empty(rows, hidden_dim)),
        nn.Parameter(torch.empty(rows)),
    )
    for each in weights:
        nn.init.uniform_(each, -bound, bound)
    return weights


def _zeros(weight: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Make a state in the weights' precision, also where products are computed in half."""
    return weight.new_zeros(*shape, weight.size(1), device=like.device)


def _fused_gates(projected: Tensor, recurrent: Tensor, memory: Tensor) -> CellState:
    """Compute the gates of an LSTM by one fused kernel.

    It wants one precision for all and two dimensions. Autocast would choose the lower one for c.
    """
    shape, dtype = memory.shape, memory.dtype
    with torch.autocast(projected.device.type, enabled=False):
        hidden, memory, _ = torch.ops.aten._thnn_fused_lstm_cell(
            projected.to(dtype).reshape(-1, projected.size(-1)),
            recurrent.to(dtype).reshape(-1, recurrent.size(-1)),
            memory.reshape(-1, shape[-1]),
        )
    return hidden.view(shape), memory.view(shape)
