"""The smallest models: their equations, their counts, and training them together."""

import pytest
import torch

from dragoman.models.build import count_parameters
from dragoman.paper.tasks.series_models import (
    AlignedWeights,
    FixedWeights,
    LastState,
    SeriesModel,
    Split,
    train_together,
)

CONTEXTS = {
    "last": LastState,
    "fixed": lambda: FixedWeights(2, 20),
    "aligned": lambda: AlignedWeights(2, 20),
}


@pytest.fixture
def states():
    torch.manual_seed(1)
    return torch.randn(3, 20, 2, dtype=torch.float64)


@pytest.mark.parametrize(("name", "count"), [("last", 11), ("fixed", 33), ("aligned", 33)])
def test_counts(name, count):
    model = SeriesModel(CONTEXTS[name](), is_squashed=False)
    assert count_parameters(model) == count
    assert count_parameters(model.cell) == 8
    assert count_parameters(model.dense) == 3


def test_shapes_of_the_two_attentions():
    fixed, aligned = FixedWeights(2, 20), AlignedWeights(2, 20)
    assert (fixed.weight.shape, fixed.bias.shape) == ((20, 1), (2, 1))
    assert (aligned.weight.shape, aligned.bias.shape) == ((2, 1), (20, 1))


def test_last_state(states):
    weights, vector = LastState()(states)
    torch.testing.assert_close(vector, states[:, -1])
    torch.testing.assert_close((weights.unsqueeze(-1) * states).sum(1), vector)


def test_the_notes_form(states):
    layer = FixedWeights(2, 20).double()
    torch.nn.init.normal_(layer.bias)
    weights, vector = layer(states)
    for row in range(3):
        total = layer.bias.squeeze(1).clone()
        for step in range(20):
            total = total + layer.weight[step, 0] * states[row, step]
        torch.testing.assert_close(vector[row], total)
    assert bool((weights < 0).any())


def test_the_tutorials_form(states):
    layer = AlignedWeights(2, 20).double()
    torch.nn.init.normal_(layer.bias)
    weights, vector = layer(states)
    scores = torch.tanh(states @ layer.weight + layer.bias).squeeze(-1)
    expected = scores.exp() / scores.exp().sum(-1, keepdim=True)
    torch.testing.assert_close(weights, expected)
    torch.testing.assert_close(vector, torch.einsum("bt,bth->bh", expected, states))


@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("is_squashed", [False, True])
def test_prediction(name, is_squashed):
    torch.manual_seed(1)
    model = SeriesModel(CONTEXTS[name](), is_squashed=is_squashed)
    series = torch.rand(4, 20)
    states, context = model.read(series)
    hidden = torch.zeros(4, 2)
    for step in range(20):
        inputs = series[:, step : step + 1] @ model.cell.weight_input.T + model.cell.bias
        hidden = torch.tanh(inputs + hidden @ model.cell.weight_hidden.T)
        torch.testing.assert_close(states[:, step], hidden)
    expected = (context.vector @ model.dense.weight.T + model.dense.bias).squeeze(-1)
    torch.testing.assert_close(model(series), expected.tanh() if is_squashed else expected)


def test_trained_together_as_if_alone():
    torch.manual_seed(1)
    train = Split(torch.rand(30, 20, dtype=torch.float64), torch.rand(30, dtype=torch.float64))

    def make():
        return SeriesModel(AlignedWeights(2, 20), is_squashed=False)

    settings = {"num_epochs": 2, "batch_size": 8, "learning_rate": 0.01}
    together = train_together(make, train, [1, 2], **settings)
    for seed, model in zip([1, 2], together, strict=True):
        (alone,) = train_together(make, train, [seed], **settings)
        for ours, theirs in zip(model.parameters(), alone.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs)


def test_training_is_that_of_a_plain_loop():
    torch.manual_seed(1)
    train = Split(torch.rand(20, 5, dtype=torch.float64), torch.rand(20, dtype=torch.float64))

    def make():
        return SeriesModel(FixedWeights(2, 5), is_squashed=False)

    (trained,) = train_together(make, train, [3], num_epochs=2, batch_size=6, learning_rate=0.05)
    torch.manual_seed(3)
    model, order = make().double(), torch.Generator().manual_seed(3)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.05, eps=1e-7)
    for _ in range(2):
        for chosen in torch.randperm(20, generator=order).split(6):
            optimiser.zero_grad()
            (model(train.series[chosen]) - train.following[chosen]).square().mean().backward()
            optimiser.step()
    for ours, theirs in zip(trained.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
