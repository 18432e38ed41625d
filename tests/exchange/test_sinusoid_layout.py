"""Channels in another order: a permutation that turns one table of sinusoids into the other."""

import numpy as np
import torch

from dragoman.exchange.sinusoid_layout import (
    concatenated_order,
    to_concatenated_sinusoids,
    to_interleaved_sinusoids,
)
from dragoman.models.positions.positional_encoding import sinusoidal_positions
from dragoman.weights import weights_of


def test_sines_come_before_cosines():
    dim, places = 12, np.arange(40)[:, None]
    angles = places / 10_000 ** (2 * np.arange(dim // 2) / dim)
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    table = sinusoidal_positions(0, 40, dim)[:, concatenated_order(dim)]
    np.testing.assert_allclose(table, expected, atol=1e-6)


def test_there_and_back(tiny_model):
    weights = weights_of(tiny_model)
    moved = to_concatenated_sinusoids(weights)
    back = to_interleaved_sinusoids(moved)
    assert weights.keys() == moved.keys() == back.keys()
    assert all(torch.equal(weights[name], back[name]) for name in weights)
    assert not torch.equal(weights["source_embedding.words"], moved["source_embedding.words"])
