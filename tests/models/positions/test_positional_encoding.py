"""Positions against their closed forms."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DataError
from dragoman.models.positions.positional_encoding import (
    IndexPositions,
    LearnedPositions,
    NormalisedPositions,
    SinusoidalPositions,
    offset_map,
    sinusoidal_positions,
)

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


@pytest.mark.parametrize("offset", [-300, -1, 0, 1, 7, 100, 2_000])
@pytest.mark.parametrize("dim", [2, 16, 128])
def test_an_offset_is_one_linear_map_for_all_positions(offset, dim):
    first, last = max(0, -offset), min(4_000, 4_000 - offset)
    there = sinusoidal_positions(first, last - first + 1, dim, CPU, torch.float64)
    moved = sinusoidal_positions(first + offset, last - first + 1, dim, CPU, torch.float64)
    torch.testing.assert_close(there @ offset_map(offset, dim).T, moved, rtol=0, atol=1e-9)


@given(one=st.integers(-500, 500), other=st.integers(-500, 500), half=st.integers(1, 16))
def test_offset_maps_are_a_group_of_rotations(one, other, half):
    dim = 2 * half
    both = offset_map(one, dim) @ offset_map(other, dim)
    torch.testing.assert_close(both, offset_map(one + other, dim), rtol=0, atol=1e-9)
    back = offset_map(one, dim).T @ offset_map(one, dim)
    torch.testing.assert_close(back, torch.eye(dim, dtype=torch.float64), rtol=0, atol=1e-9)


def test_an_offset_map_mixes_only_sine_and_cosine_of_a_pair():
    blocks = torch.block_diag(*[torch.ones(2, 2)] * 4)
    assert torch.equal(offset_map(5, 8) != 0, blocks != 0)


def test_the_dot_product_depends_on_the_distance_alone():
    table = sinusoidal_positions(0, 500, 32, CPU, torch.float64)
    products = (table[:-9] * table[9:]).sum(-1)
    torch.testing.assert_close(products, products[:1].expand(491), rtol=0, atol=1e-9)


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


def test_a_table_that_grew_in_inference_serves_training():
    positions = SinusoidalPositions(8)
    with torch.inference_mode():
        positions(len(positions.table), 1)
    vectors = torch.ones(4, 8, requires_grad=True)
    (vectors * positions(0, 4)).sum().backward()
    torch.testing.assert_close(vectors.grad, sinusoidal_positions(0, 4, 8, CPU))


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


def test_lengths_are_ignored_by_schemes_that_do_not_ask():
    learned = LearnedPositions(6, 4)
    torch.nn.init.normal_(learned.weight)
    lengths = torch.tensor([3, 9])
    for positions in (SinusoidalPositions(4), learned, IndexPositions(4)):
        assert torch.equal(positions(1, 4, lengths), positions(1, 4, None))


@given(lengths=st.lists(st.integers(2, 60), min_size=1, max_size=4))
def test_normalised_positions_go_from_zero_to_one(lengths):
    found = NormalisedPositions(3)(0, max(lengths), torch.tensor(lengths))
    assert found.shape == (len(lengths), max(lengths), 3)
    for row, length in enumerate(lengths):
        expected = [[place / (length - 1)] * 3 for place in range(max(lengths))]
        torch.testing.assert_close(found[row], torch.tensor(expected))
        assert found[row, length - 1, 0] == 1


def test_normalised_positions_of_one_word_and_beyond_the_source():
    found = NormalisedPositions(2)(0, 3, torch.tensor([1, 2]))
    assert found[..., 0].tolist() == [[0, 1, 2], [0, 1, 2]]


def test_normalised_positions_must_be_told_the_lengths():
    with pytest.raises(ValueError, match="must be told how long the sentences are"):
        NormalisedPositions(4)(0, 3, None)


def test_index_positions_count_from_one():
    assert IndexPositions(2)(0, 3).tolist() == [[1, 1], [2, 2], [3, 3]]
    assert IndexPositions(1)(9, 2).tolist() == [[10], [11]]


@pytest.mark.parametrize("scheme", [SinusoidalPositions, NormalisedPositions, IndexPositions])
def test_word_by_word(scheme):
    positions, lengths = scheme(6), torch.tensor([4, 7])
    whole = positions(0, 9, lengths)
    for place in range(9):
        one = positions(place, 1, lengths)
        assert torch.equal(one, whole[..., place : place + 1, :])


@pytest.mark.parametrize("scheme", [SinusoidalPositions, NormalisedPositions, IndexPositions])
def test_precision_and_device_are_those_of_the_model(scheme):
    assert scheme(4).double()(0, 2, torch.tensor([2])).dtype == torch.float64
    assert scheme(4).bfloat16()(0, 2, torch.tensor([2])).dtype == torch.bfloat16
    assert scheme(4).to("meta")(0, 2, torch.tensor([2], device="meta")).is_meta
    assert not scheme(4).state_dict()


def test_marians_wavelengths_reach_ten_thousand():
    table = sinusoidal_positions(0, 50, 8, dtype=torch.float64, is_inclusive=True)
    for position in (0, 1, 49):
        for i in range(4):
            angle = position * math.exp(-i * math.log(10_000) / 3)
            expected = [math.sin(angle), math.cos(angle)]
            assert table[position, 2 * i : 2 * i + 2].tolist() == pytest.approx(expected)
    grown = SinusoidalPositions(8, is_inclusive=True)(590, 10)
    expected = sinusoidal_positions(590, 10, 8, is_inclusive=True)
    torch.testing.assert_close(grown, expected)
