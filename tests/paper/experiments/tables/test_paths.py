"""Paths by search against closed forms, and the wiring against what real layers do."""

import math

import pytest
import torch
from torch import nn

from dragoman.paper.experiments.tables.layers import list_layers
from dragoman.paper.experiments.tables.paths import find_longest_path, list_wirings


def wirings(kernel_size=3, window=10):
    return {each.name: each for each in list_wirings(kernel_size, window)}


@pytest.mark.parametrize("num_words", [2, 3, 16, 28, 101])
@pytest.mark.parametrize(("kernel_size", "window"), [(3, 10), (5, 4)])
def test_closed_forms(num_words, kernel_size, window):
    found = {
        name: find_longest_path(wiring, num_words)
        for name, wiring in wirings(kernel_size, window).items()
    }
    layers = 0
    while kernel_size**layers < num_words:
        layers += 1
    assert found == {
        "self-attention": 1,
        "recurrent": num_words - 1,
        "convolutional, contiguous": math.ceil((num_words - 1) / (kernel_size - 1)),
        "self-attention (restricted)": math.ceil((num_words - 1) / (window // 2)),
        "convolutional, dilated": layers,
    }


def test_the_reference_example():
    assert find_longest_path(wirings(window=10)["self-attention (restricted)"], 101) == 20


def depends_on(layer, length: int, width: int = 4) -> torch.Tensor:
    """Find which words each word of a layer's output depends on, from its derivative."""
    torch.manual_seed(1)
    words = torch.randn(1, length, width)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x).sum(-1)[0], words)
    return jacobian[:, 0].abs().sum(-1) > 0


def wired(name: str, length: int, **sizes) -> torch.Tensor:
    distances = list(wirings(**sizes)[name].distances(0, length))
    places = torch.arange(length)
    return torch.isin(places[:, None] - places, torch.tensor(distances))


def test_wiring_is_that_of_the_layers():
    length, window = 40, 6
    layers = {kind.name: kind.make(4) for kind in list_layers(3, window)}
    attention = depends_on(layers["self-attention"], length)
    assert torch.equal(attention, wired("self-attention", length))
    restricted = depends_on(layers["self-attention (restricted)"], length)
    assert torch.equal(restricted, wired("self-attention (restricted)", length, window=window))
    convolution = nn.Conv1d(4, 4, 3, padding=2)
    contiguous = depends_on(lambda x: convolution(x.mT).mT[:, :length], length)
    assert torch.equal(contiguous, wired("convolutional, contiguous", length))


def test_dilated_layers_reach_as_far_as_the_search_says():
    layers = [nn.Conv1d(4, 4, 3, dilation=3**step, padding=2 * 3**step) for step in range(3)]

    def stack(words):
        states = words.mT
        for layer in layers:
            states = layer(states)[..., : words.size(1)]
        return states.mT

    wiring = wirings()["convolutional, dilated"]
    assert find_longest_path(wiring, 27) == 3
    assert bool(depends_on(stack, 27)[-1, 0])
    assert not bool(depends_on(stack, 28)[-1, 0])
