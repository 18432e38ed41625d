"""Fused kernels against the plain loop, sentences' ends, and both directions."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dragoman.models.recurrent.cells import GRUCell, LSTMCell, RNNCell, make_cell
from dragoman.models.recurrent.layer import (
    BidirectionalLayer,
    RecurrentLayer,
    reverse_sequences,
    run_fused,
    run_in_loop,
)

KINDS = ("rnn", "gru", "lstm")
LENGTHS = torch.tensor([6, 1, 4, 5])


def gradients_of(outputs, last, leaves):
    """Derive something that every real output and every last state has a share in."""
    real = torch.arange(outputs.size(1)) < LENGTHS[:, None]
    total = (outputs.sin() * real.unsqueeze(-1)).sum() + sum(each.cos().sum() for each in last)
    return torch.autograd.grad(total, leaves)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_fused_equals_loop_with_gradients(kind, dtype):
    torch.manual_seed(0)
    cell = make_cell(kind, 5, 7).to(dtype)
    inputs = torch.randn(4, 6, 5, dtype=dtype, requires_grad=True)
    state = tuple(
        torch.randn(4, 7, dtype=dtype, requires_grad=True) for _ in range(cell.num_states)
    )
    tolerance = {"atol": 1e-5 if dtype == torch.float32 else 1e-12, "rtol": 1e-5}
    leaves = [inputs, *state, *cell.parameters()]
    for lengths in (None, LENGTHS):
        fused, fused_last = run_fused(cell, inputs, state, lengths)
        looped, looped_last = run_in_loop(cell, inputs, state, lengths)
        real = torch.ones(4, 6, dtype=torch.bool)
        if lengths is not None:
            real = torch.arange(6) < lengths[:, None]
        torch.testing.assert_close(fused[real], looped[real], **tolerance)
        for one, other in zip(fused_last, looped_last, strict=True):
            torch.testing.assert_close(one, other, **tolerance)
        for one, other in zip(
            gradients_of(fused, fused_last, leaves),
            gradients_of(looped, looped_last, leaves),
            strict=True,
        ):
            torch.testing.assert_close(one, other, **tolerance)


@pytest.mark.parametrize("cell", [RNNCell(3, 4), GRUCell(3, 4), GRUCell(3, 4, "before"),
                                  LSTMCell(3, 4)])  # fmt: skip
def test_last_state_is_that_of_the_sentence_alone(cell):
    torch.manual_seed(1)
    layer = RecurrentLayer(cell)
    inputs = torch.randn(4, 6, 3)
    outputs, last = layer(inputs, lengths=LENGTHS)
    huge = inputs.masked_fill((torch.arange(6) >= LENGTHS[:, None]).unsqueeze(-1), 1e3)
    _, same_last = layer(huge, lengths=LENGTHS)
    for row, length in enumerate(LENGTHS.tolist()):
        alone, state = layer(inputs[row : row + 1, :length])
        torch.testing.assert_close(outputs[row, :length], alone[0], atol=1e-6, rtol=1e-5)
        for padded, other, each in zip(last, same_last, state, strict=True):
            torch.testing.assert_close(padded[row], each[0], atol=1e-6, rtol=1e-5)
            torch.testing.assert_close(other[row], each[0], atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_layer_goes_on_where_it_stopped(kind):
    torch.manual_seed(2)
    layer = RecurrentLayer(make_cell(kind, 3, 4))
    inputs = torch.randn(2, 6, 3)
    whole, end = layer(inputs)
    first, state = layer(inputs[:, :2])
    second, same_end = layer(inputs[:, 2:], state)
    torch.testing.assert_close(torch.cat([first, second], dim=1), whole)
    for one, other in zip(end, same_end, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("cell", [RNNCell(3, 4), GRUCell(3, 4), GRUCell(3, 4, "before"),
                                  LSTMCell(3, 4)])  # fmt: skip
def test_autocast_on_a_processor(cell):
    torch.manual_seed(3)
    layer = RecurrentLayer(cell)
    inputs = torch.randn(4, 6, 3, requires_grad=True)
    exact, _ = layer(inputs, lengths=LENGTHS)
    with torch.autocast("cpu", torch.bfloat16):
        below = nn.functional.linear(inputs, torch.eye(3))
        assert below.dtype == torch.bfloat16
        outputs, last = layer(below, lengths=LENGTHS)
        _, last = layer(below, last, LENGTHS)
    assert {each.dtype for each in last} == {torch.float32}
    torch.testing.assert_close(outputs.float(), exact, atol=0.05, rtol=0.05)
    sum(each.sum() for each in last).backward()
    assert inputs.grad.abs().sum() > 0


@pytest.mark.parametrize("cell", [RNNCell(3, 4), GRUCell(3, 4), GRUCell(3, 4, "before"),
                                  LSTMCell(3, 4)])  # fmt: skip
def test_layers_run_without_numbers(cell):
    layer = RecurrentLayer(cell.to("meta"))
    lengths = LENGTHS.to("meta")
    outputs, last = layer(torch.empty(4, 6, 3, device="meta"), lengths=lengths)
    assert outputs.shape == (4, 6, 4)
    assert {each.shape for each in last} == {(4, 4)}


@pytest.mark.gpu
@pytest.mark.parametrize("is_half", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_fused_equals_loop_on_a_gpu(kind, is_half, recwarn):
    torch.manual_seed(4)
    cell = make_cell(kind, 24, 40).cuda()
    inputs = torch.randn(4, 6, 24, device="cuda", requires_grad=True)
    lengths, state = LENGTHS.cuda(), cell.start((4,), inputs)
    expected = run_in_loop(cell.cpu(), inputs.cpu(), tuple(e.cpu() for e in state), LENGTHS)
    cell.cuda()
    exactly = torch.backends.cudnn.flags(allow_tf32=False)
    with exactly, torch.autocast("cuda", torch.bfloat16, enabled=is_half):
        outputs, last = run_fused(cell, inputs, state, lengths)
    real = (torch.arange(6) < LENGTHS[:, None]).unsqueeze(-1)
    tolerance = {"atol": 0.05, "rtol": 0.05} if is_half else {"atol": 1e-4, "rtol": 1e-4}
    torch.testing.assert_close(outputs.float().cpu() * real, expected[0] * real, **tolerance)
    for one, other in zip(last, expected[1], strict=True):
        assert one.dtype == torch.float32
        torch.testing.assert_close(one.cpu(), other, **tolerance)
    (outputs.float().cpu() * real).sum().backward()
    assert all(each.grad is not None and each.grad.any() for each in cell.parameters())
    assert not recwarn.list, "the weights must lie as cuDNN wants them"


@given(st.lists(st.integers(1, 7), min_size=1, max_size=5))
def test_reversing_is_its_own_inverse_and_keeps_padding(lengths):
    longest = max(lengths) + 1
    ids = torch.arange(len(lengths) * longest).view(len(lengths), longest)
    turned = reverse_sequences(ids, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        words = ids[row].tolist()
        assert turned[row].tolist() == words[:length][::-1] + words[length:]
    assert torch.equal(reverse_sequences(turned, torch.tensor(lengths)), ids)


def test_both_directions_equal_torch():
    torch.manual_seed(5)
    layer = BidirectionalLayer(LSTMCell(3, 4), LSTMCell(3, 4))
    theirs = nn.LSTM(3, 4, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for suffix, each in (("", layer.forwards.cell), ("_reverse", layer.backwards.cell)):
            getattr(theirs, f"weight_ih_l0{suffix}").copy_(each.weight_input)
            getattr(theirs, f"weight_hh_l0{suffix}").copy_(each.weight_hidden)
            getattr(theirs, f"bias_ih_l0{suffix}").copy_(each.bias)
            getattr(theirs, f"bias_hh_l0{suffix}").zero_()
    inputs = torch.randn(4, 6, 3)
    outputs, states = layer(inputs, LENGTHS)
    packed = nn.utils.rnn.pack_padded_sequence(
        inputs, LENGTHS, batch_first=True, enforce_sorted=False
    )
    expected, last = theirs(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(expected, batch_first=True)
    real = torch.arange(6) < LENGTHS[:, None]
    torch.testing.assert_close(outputs[real], expected[real])
    for direction in range(2):
        for found, each in zip(states[direction], last, strict=True):
            torch.testing.assert_close(found, each[direction])
