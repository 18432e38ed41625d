"""Convolutions against PyTorch's, steps against the whole, and how far a stack sees."""

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from dragoman.models.convolutional.convolution import (
    Convolution,
    WeightNormLinear,
    receptive_field,
)

IN, OUT = 5, 7
SHAPES = [(1, 1), (1, 4), (2, 1), (3, 1), (3, 8), (5, 2), (4, 3)]


def make_convolution(kernel_size, dilation, *, causal, normed=False):
    torch.manual_seed(0)
    kind = WeightNormLinear if normed else nn.Linear
    linear = kind(kernel_size * IN, OUT)
    if normed:
        linear.initialise(0.5)
        nn.init.normal_(linear.bias)
    return Convolution(linear.double(), kernel_size=kernel_size, dilation=dilation, causal=causal)


# Weight normalisation


def test_weight_norm_equals_pytorch_with_its_gradients():
    torch.manual_seed(0)
    ours, theirs = WeightNormLinear(IN, OUT).double(), weight_norm(nn.Linear(IN, OUT).double())
    with torch.no_grad():
        for each in ours.parameters():
            each.normal_()
        theirs.bias.copy_(ours.bias)
        theirs.parametrizations.weight.original0.copy_(ours.magnitude.unsqueeze(1))
        theirs.parametrizations.weight.original1.copy_(ours.direction)
    states = torch.randn(2, 3, IN, dtype=torch.float64)
    found, expected = ours(states), theirs(states)
    torch.testing.assert_close(found, expected)
    found.pow(3).sum().backward()
    expected.pow(3).sum().backward()
    lengths, directions = theirs.parametrizations.weight.parameters()
    torch.testing.assert_close(ours.magnitude.grad, lengths.grad.squeeze(1))
    torch.testing.assert_close(ours.direction.grad, directions.grad)
    torch.testing.assert_close(ours.bias.grad, theirs.bias.grad)


def test_weight_norm_begins_with_the_matrix_drawn():
    torch.manual_seed(0)
    linear = WeightNormLinear(300, 200)
    linear.initialise(0.25)
    torch.testing.assert_close(linear.weight, linear.direction)
    assert linear.weight.std().item() == pytest.approx(0.25, rel=0.02)
    assert linear.bias.eq(0).all()


def test_only_the_magnitude_decides_a_rows_length():
    linear = WeightNormLinear(IN, OUT)
    linear.initialise(1.0)
    before = linear.weight
    with torch.no_grad():
        linear.direction.mul_(torch.arange(1.0, OUT + 1).unsqueeze(1))
    torch.testing.assert_close(linear.weight, before)


# The convolution


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(
    ("kernel_size", "dilation", "causal"),
    [(*shape, True) for shape in SHAPES] + [(*shape, False) for shape in SHAPES if shape[0] % 2],
)
def test_equals_pytorch(kernel_size, dilation, causal, normed):
    ours = make_convolution(kernel_size, dilation, causal=causal, normed=normed)
    states = torch.randn(2, 9, IN, dtype=torch.float64)
    weight = ours.linear.weight.unflatten(1, (kernel_size, IN)).transpose(1, 2)
    reach = (kernel_size - 1) * dilation
    sides = (reach, 0) if causal else (reach // 2, reach // 2)
    padded = functional.pad(states.transpose(1, 2), sides)
    expected = functional.conv1d(padded, weight, ours.linear.bias, dilation=dilation)
    torch.testing.assert_close(ours(states), expected.transpose(1, 2))


@pytest.mark.parametrize(("kernel_size", "dilation"), [(1, 1), (3, 1), (3, 4), (5, 2)])
def test_padding_counts_as_nothing(kernel_size, dilation):
    convolution = make_convolution(kernel_size, dilation, causal=False)
    states = torch.randn(2, 9, IN, dtype=torch.float64)
    lengths = torch.tensor([9, 4])
    together = convolution(states, torch.arange(9) < lengths[:, None])
    torch.testing.assert_close(together[:1], convolution(states[:1]))
    torch.testing.assert_close(together[1:, :4], convolution(states[1:, :4]))


@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize(("kernel_size", "dilation"), SHAPES)
def test_steps_equal_the_whole(kernel_size, dilation, normed):
    convolution = make_convolution(kernel_size, dilation, causal=True, normed=normed)
    states = torch.randn(2, 9, IN, dtype=torch.float64)
    whole = convolution(states)
    past = convolution.start(2, states)
    shape = (2, 1, convolution.memory_size, IN)
    for place in range(9):
        assert past.shape == shape
        before = past.clone()
        found, following = convolution.step(states[:, None, place], past)
        torch.testing.assert_close(found[:, 0], whole[:, place])
        assert torch.equal(past, before)
        past = following


def test_misuse_is_noticed():
    with pytest.raises(AssertionError):
        make_convolution(2, 1, causal=False)
    with pytest.raises(AssertionError):
        Convolution(nn.Linear(7, 2), kernel_size=3, causal=True)
    centred = make_convolution(3, 1, causal=False)
    states = torch.zeros(1, 1, IN, dtype=torch.float64)
    with pytest.raises(AssertionError):
        centred.step(states, centred.start(1, states))


# How far a stack sees


@pytest.mark.parametrize(
    ("kernel_size", "dilations", "expected"),
    [
        (3, [1, 2, 4, 8, 16], 63),
        (3, 6 * [1, 2, 4, 8, 16], 373),
        (3, [], 1),
        (1, [1, 2, 4], 1),
        (3, [1] * 31, 63),
    ],
)
def test_receptive_field(kernel_size, dilations, expected):
    assert receptive_field(kernel_size, dilations) == expected


@pytest.mark.parametrize("layers", range(1, 9))
def test_doubling_dilations_see_exponentially_far_and_contiguous_ones_do_not(layers):
    doubling = receptive_field(2, [2**layer for layer in range(layers)])
    assert doubling == 2**layers
    assert receptive_field(2, [1] * layers) == layers + 1


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("kernel_size", "dilations"), [(3, [1, 2, 4]), (5, [1, 3]), (3, [2, 2])])
def test_receptive_field_of_a_stack_is_what_gradients_reach(kernel_size, dilations, causal):
    torch.manual_seed(0)
    field = receptive_field(kernel_size, dilations)
    length = 2 * field + 1
    states = torch.randn(1, length, IN, dtype=torch.float64, requires_grad=True)
    found = states
    for dilation in dilations:
        linear = nn.Linear(kernel_size * IN, IN).double()
        found = Convolution(linear, kernel_size=kernel_size, dilation=dilation, causal=causal)(
            found
        )
    found[0, field].sum().backward()
    reached = states.grad[0].ne(0).any(-1).nonzero().flatten()
    # With dilations that all are multiples of 2 the field has holes, but its ends are the same.
    assert reached[-1] - reached[0] + 1 == field
    assert reached[-1] == (field if causal else field + field // 2)
