"""The notes' smallest models: a recurrent cell of two units that predicts the next number."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from dragoman.models.recurrent.cells import RNNCell
from dragoman.models.recurrent.layer import run_in_loop
from dragoman.shapes import Float, Int


class Context(NamedTuple):
    """A context vector: a weight for each time step, and the weighted sum of states."""

    weights: Float[Tensor, "batch steps"]
    vector: Float[Tensor, "batch hidden"]


class LastState(nn.Module):
    r"""No attention: the context is the last state.

    Notes
    -----
    :math:`c = h_T`.
    """

    def forward(self, states: Float[Tensor, "batch steps hidden"]) -> Context:
        """Take the last state."""
        weights = torch.zeros_like(states[..., 0])
        weights[:, -1] = 1
        return Context(weights, states[:, -1])


class FixedWeights(nn.Module):
    r"""Attention as one of the notes defines it: a learned weight for each time step.

    Parameters
    ----------
    hidden_dim : int
        Units of the cell.
    num_steps : int
        Time steps.

    Notes
    -----
    :math:`c = \sum_t \alpha_t h_t + b`, with α of shape (time steps, 1) and b of shape (hidden, 1).
    There is no softmax: the note prints negative weights. They are the same for every input, so
    this is a linear layer over time rather than attention.
    """

    def __init__(self, hidden_dim: int, num_steps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(num_steps, 1))
        self.bias = nn.Parameter(torch.zeros(hidden_dim, 1))

    def forward(self, states: Float[Tensor, "batch steps hidden"]) -> Context:
        """Compute the weighted sum of the states."""
        weights = self.weight.squeeze(-1).expand(states.shape[:2])
        return Context(weights, (weights.unsqueeze(-1) * states).sum(1) + self.bias.squeeze(-1))


class AlignedWeights(nn.Module):
    r"""Attention as in the tutorial that the note cites: a score for each state, then softmax.

    Parameters
    ----------
    hidden_dim : int
        Units of the cell.
    num_steps : int
        Time steps.

    Notes
    -----
    :math:`e = \tanh(hW + b)`, :math:`\alpha = \mathrm{softmax}(e)`, :math:`c = \sum_t\alpha_t h_t`,
    with W of shape (hidden, 1) and b of shape (time steps, 1).
    """

    def __init__(self, hidden_dim: int, num_steps: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.05 * torch.randn(hidden_dim, 1))
        self.bias = nn.Parameter(torch.zeros(num_steps, 1))

    def forward(self, states: Float[Tensor, "batch steps hidden"]) -> Context:
        """Compute the attention-weighted average of the states."""
        weights = torch.tanh(states @ self.weight + self.bias).squeeze(-1).softmax(-1)
        return Context(weights, (weights.unsqueeze(-1) * states).sum(1))


class SeriesModel(nn.Module):
    """SimpleRNN, a context of its states, Dense(1).

    Parameters
    ----------
    context : nn.Module
        What makes one vector of all states.
    hidden_dim : int
        Units of the cell.
    is_squashed : bool
        Whether the output is a tanh, as in the tutorial, or linear, as in the note.

    Notes
    -----
    The weights begin as Keras begins them: Xavier-uniform, the recurrent ones orthogonal, biases
    zero.
    """

    def __init__(self, context: nn.Module, hidden_dim: int = 2, *, is_squashed: bool) -> None:
        super().__init__()
        self.cell = RNNCell(1, hidden_dim)
        self.context = context
        self.dense = nn.Linear(hidden_dim, 1)
        self.is_squashed = is_squashed
        nn.init.xavier_uniform_(self.cell.weight_input)
        nn.init.orthogonal_(self.cell.weight_hidden)
        nn.init.zeros_(self.cell.bias)
        nn.init.xavier_uniform_(self.dense.weight)
        nn.init.zeros_(self.dense.bias)

    def read(
        self, series: Float[Tensor, "batch steps"]
    ) -> tuple[Float[Tensor, "batch steps hidden"], Context]:
        """Read series of numbers."""
        inputs = series.unsqueeze(-1)
        states, _ = run_in_loop(self.cell, inputs, self.cell.start((len(inputs),), inputs), None)
        return states, self.context(states)

    def forward(self, series: Float[Tensor, "batch steps"]) -> Float[Tensor, "batch"]:
        """Predict the number that follows."""
        _, context = self.read(series)
        predicted = self.dense(context.vector).squeeze(-1)
        return torch.tanh(predicted) if self.is_squashed else predicted


class Split(NamedTuple):
    """Series of a training or test set, and the number that follows each."""

    series: Float[Tensor, "windows steps"]
    following: Float[Tensor, "windows"]


def train_together(
    make: Callable[[], SeriesModel],
    train: Split,
    seeds: Sequence[int],
    *,
    num_epochs: int,
    batch_size: int,
    learning_rate: float,
) -> list[SeriesModel]:
    """Train a model from several seeds at once.

    Notes
    -----
    Mean squared error, Adam with Keras's ε. The models are stacked, so that one update of
    all costs little more than one of one; Adam acts on each number by itself, so none of them
    affects the others.
    """
    models, orders = [], []
    for seed in seeds:
        torch.manual_seed(seed)
        models.append(make().double())
        orders.append(torch.Generator().manual_seed(seed))
    stacked, _ = stack_module_state(models)
    optimiser = torch.optim.Adam(stacked.values(), lr=learning_rate, eps=1e-7)

    def predict(weights: dict[str, Tensor], series: Tensor) -> Tensor:
        return functional_call(models[0], weights, (series,))

    for _ in range(num_epochs):
        shuffled = torch.stack([_shuffle(len(train.following), order) for order in orders])
        for chosen in shuffled.split(batch_size, dim=1):
            predicted = vmap(predict)(stacked, train.series[chosen])
            loss = (predicted - train.following[chosen]).square().mean(1).sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    for index, model in enumerate(models):
        model.load_state_dict({name: each[index].detach() for name, each in stacked.items()})
    return models


def _shuffle(count: int, generator: torch.Generator) -> Int[Tensor, "{count}"]:
    return torch.randperm(count, generator=generator)
