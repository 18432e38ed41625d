"""Positions against their closed forms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.models.positions import LearnedPositions, SinusoidalPositions, sinusoidal_positions

CPU = torch.device("cpu")


@given(first=st.integers(0, 10_000), count=st.integers(1, 5), half=st.integers(1, 40))
def test_sine_and_cosine_are_interleaved(first, count, half):
    dim = 2 * half
    table = sinusoidal_positions(first, count, dim, CPU)
    for row in range(count):
        for index in range(half):
            angle = (first + row) / 10_000 ** (2 * index / dim)
            assert table[row, 2 * index].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[row, 2 * index + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_position_zero_alternates_zero_and_one():
    assert sinusoidal_positions(0, 1, 6, CPU).tolist() == [[0, 1, 0, 1, 0, 1]]


@given(first=st.integers(0, 50_000), half=st.integers(1, 64))
def test_squared_norm_is_half_the_width(first, half):
    table = sinusoidal_positions(first, 2, 2 * half, CPU)
    assert table.square().sum(-1).tolist() == pytest.approx([half, half], rel=1e-5)


@pytest.mark.parametrize("offset", [1, 7, 100])
def test_an_offset_is_one_linear_map_for_all_positions(offset):
    dim = 16
    table = sinusoidal_positions(0, 300, dim, CPU).double()
    rotation = torch.zeros(dim, dim, dtype=torch.float64)
    for index in range(0, dim, 2):
        angle = offset / 10_000 ** (index / dim)
        sine, cosine = math.sin(angle), math.cos(angle)
        rotation[index : index + 2, index : index + 2] = torch.tensor(
            [[cosine, sine], [-sine, cosine]], dtype=torch.float64
        )
    moved = table[: 300 - offset] @ rotation.T
    torch.testing.assert_close(moved, table[offset:], rtol=1e-5, atol=1e-5)


def test_a_longer_sequence_than_the_first_table():
    positions = SinusoidalPositions(8)
    rows = len(positions.table)
    found = positions(rows - 3, 10)
    torch.testing.assert_close(found, sinusoidal_positions(rows - 3, 10, 8, CPU))
    assert len(positions.table) > rows
    torch.testing.assert_close(positions(0, 4), sinusoidal_positions(0, 4, 8, CPU))


def test_the_table_keeps_its_precision_when_it_grows():
    positions = SinusoidalPositions(8).bfloat16()
    assert positions(len(positions.table), 5).dtype == torch.bfloat16


def test_sinusoids_have_no_weights_and_are_not_saved():
    positions = SinusoidalPositions(8)
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_rows_of_their_table():
    positions = LearnedPositions(6, 4)
    torch.nn.init.normal_(positions.weight)
    assert torch.equal(positions(2, 3), positions.weight[2:5])
    assert positions(0, 6).shape == (6, 4)


def test_learned_positions_end():
    positions = LearnedPositions(6, 4)
    with pytest.raises(DataError) as caught:
        positions(4, 3)
    assert str(caught.value) == (
        "a sequence of 7 subwords is longer than the 6 learned positions of the model; "
        "lower max_length or raise max_positions"
    )
