"""The feed-forward layer against equation 2."""

import torch

from dragoman.models.feed_forward import FeedForward


def test_is_equation_2():
    torch.manual_seed(0)
    layer = FeedForward(6, 10)
    states = torch.randn(2, 3, 6)
    widened = states @ layer.inner.weight.T + layer.inner.bias
    expected = widened.clamp(min=0) @ layer.outer.weight.T + layer.outer.bias
    torch.testing.assert_close(layer(states), expected)
    assert (widened < 0).any()


def test_positions_do_not_meet():
    torch.manual_seed(0)
    layer = FeedForward(6, 10)
    states = torch.randn(2, 3, 6)
    whole = layer(states)
    for row in range(2):
        for place in range(3):
            torch.testing.assert_close(layer(states[row, place]), whole[row, place])
