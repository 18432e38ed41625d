"""Cells against PyTorch's own layers, against their formulas, and by their counts."""

import math

import pytest
import torch
from torch import nn

from dragoman.models.recurrent.cells import GRUCell, LSTMCell, RNNCell, make_cell

INPUT_DIM, HIDDEN_DIM, BATCH, LENGTH = 5, 7, 3, 6
TORCH_LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def num_parameters(*modules: nn.Module) -> int:
    return sum(each.numel() for module in modules for each in module.parameters())


def torch_layer(kind: str, cell: nn.Module, dtype: torch.dtype) -> nn.Module:
    """PyTorch's layer with the cell's weights, and nothing in its second bias."""
    layer = TORCH_LAYERS[kind](cell.input_dim, cell.hidden_dim, batch_first=True, dtype=dtype)
    with torch.no_grad():
        layer.weight_ih_l0.copy_(cell.weight_input)
        layer.weight_hh_l0.copy_(cell.weight_hidden)
        layer.bias_ih_l0.copy_(cell.bias)
        layer.bias_hh_l0.zero_()
    return layer


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", TORCH_LAYERS)
def test_cells_equal_torch(kind, dtype):
    torch.manual_seed(0)
    cell = make_cell(kind, INPUT_DIM, HIDDEN_DIM).to(dtype)
    layer = torch_layer(kind, cell, dtype)
    inputs = torch.randn(BATCH, LENGTH, INPUT_DIM, dtype=dtype)
    state = tuple(torch.randn(BATCH, HIDDEN_DIM, dtype=dtype) for _ in range(cell.num_states))
    begin = tuple(each.unsqueeze(0) for each in state)
    expected, last = layer(inputs, begin if kind == "lstm" else begin[0])
    outputs = []
    for projected in cell.project(inputs).unbind(1):
        state = cell(projected, state)
        outputs.append(state[0])
    torch.testing.assert_close(torch.stack(outputs, 1), expected, atol=1e-6, rtol=0)
    for found, each in zip(state, last if kind == "lstm" else (last,), strict=True):
        torch.testing.assert_close(found, each.squeeze(0), atol=1e-6, rtol=0)


def test_reset_before_equals_the_formula_entry_by_entry():
    torch.manual_seed(1)
    cell = GRUCell(2, 3, reset="before").double()
    x, h = torch.randn(2, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    weight, recurrent, bias = (
        each.tolist() for each in (cell.weight_input, cell.weight_hidden, cell.bias)
    )

    def total(row: int, state: list[float]) -> float:
        read = sum(weight[row][i] * x[i].item() for i in range(2))
        return read + sum(recurrent[row][i] * state[i] for i in range(3)) + bias[row]

    def logistic(value: float) -> float:
        return 1 / (1 + math.exp(-value))

    old = h.tolist()
    reset = [logistic(total(j, old)) for j in range(3)]
    update = [logistic(total(3 + j, old)) for j in range(3)]
    candidate = [math.tanh(total(6 + j, [reset[i] * old[i] for i in range(3)])) for j in range(3)]
    expected = [(1 - update[j]) * candidate[j] + update[j] * old[j] for j in range(3)]
    (found,) = cell(cell.project(x), (h,))
    assert found.tolist() == pytest.approx(expected, abs=1e-12)


def test_the_two_resets_differ_unless_the_state_is_a_single_number():
    torch.manual_seed(2)
    for width, is_same in ((1, True), (4, False)):
        before, after = GRUCell(3, width, reset="before"), GRUCell(3, width, reset="after")
        after.load_state_dict(before.state_dict())
        x, h = torch.randn(2, 3), torch.randn(2, width)
        (one,), (other,) = before(before.project(x), (h,)), after(after.project(x), (h,))
        assert torch.allclose(one, other, atol=1e-6) == is_same


def test_update_gates_of_bahdanau_are_ours_with_signs_turned():
    torch.manual_seed(3)
    cell = GRUCell(3, 4, reset="before").double()
    x, h = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, 4, dtype=torch.float64)
    reset, update, new = cell.project(x).chunk(3, dim=-1)
    of_reset, of_update, of_new = cell.weight_hidden.chunk(3)
    reset, update = torch.sigmoid(reset + h @ of_reset.T), torch.sigmoid(update + h @ of_update.T)
    theirs = (1 - update) * h + update * torch.tanh(new + (reset * h) @ of_new.T)
    with torch.no_grad():
        for each in (cell.weight_input, cell.weight_hidden, cell.bias):
            each.chunk(3)[1].neg_()
    torch.testing.assert_close(cell(cell.project(x), (h,))[0], theirs)


def test_counts_of_the_notes():
    assert num_parameters(RNNCell(1, 2), nn.Linear(2, 1)) == 11
    encoder, decoder, dense = LSTMCell(74, 256), LSTMCell(78, 256), nn.Linear(256, 78)
    assert num_parameters(encoder) == 338_944
    assert num_parameters(decoder) == 343_040
    assert num_parameters(encoder, decoder, dense) == 702_030
    assert num_parameters(GRUCell(5, 7)) == 3 * 7 * (5 + 7 + 1)


@pytest.mark.parametrize("kind", TORCH_LAYERS)
def test_states_may_have_beams(kind):
    torch.manual_seed(4)
    cell = make_cell(kind, INPUT_DIM, HIDDEN_DIM)
    inputs = torch.randn(2, 3, INPUT_DIM)
    state = cell.start((2, 3), inputs)
    assert [each.shape for each in state] == [(2, 3, HIDDEN_DIM)] * cell.num_states
    assert not any(each.any() for each in state)
    found = cell(cell.project(inputs), state)
    flat = cell(cell.project(inputs.flatten(0, 1)), cell.start((6,), inputs))
    for one, other in zip(found, flat, strict=True):
        torch.testing.assert_close(one.flatten(0, 1), other)


@pytest.mark.parametrize("cell", [RNNCell(3, 4), GRUCell(3, 4), GRUCell(3, 4, "before"),
                                  LSTMCell(3, 4)])  # fmt: skip
def test_states_keep_their_precision_under_autocast(cell):
    inputs = torch.randn(2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        state = cell.start((2,), inputs)
        for _ in range(2):
            state = cell(cell.project(inputs), state)
    assert {each.dtype for each in state} == {torch.float32}


def test_forget_bias_is_the_forget_gates():
    cell = LSTMCell(3, 4)
    with torch.no_grad():
        for each in cell.parameters():
            each.zero_()
        cell.forget_bias.fill_(50.0)
    memory = torch.randn(2, 4)
    _, kept = cell(cell.project(torch.randn(2, 3)), (torch.randn(2, 4), memory))
    torch.testing.assert_close(kept, memory)


@pytest.mark.gpu
@pytest.mark.parametrize("is_half", [False, True])
def test_lstm_on_a_gpu_equals_itself_elsewhere(is_half):
    torch.manual_seed(5)
    cell = LSTMCell(INPUT_DIM, HIDDEN_DIM)
    inputs, *state = (torch.randn(2, 3, width) for width in (INPUT_DIM, HIDDEN_DIM, HIDDEN_DIM))

    def run(device: str) -> list[torch.Tensor]:
        cell.to(device).zero_grad()
        before = tuple(each.clone().to(device).requires_grad_() for each in state)
        with torch.autocast("cuda", torch.bfloat16, enabled=is_half):
            after = cell(cell.project(inputs.to(device)), before)
        sum(each.square().sum() for each in after).backward()
        gradients = [each.grad for each in (*before, *cell.parameters())]
        assert {each.dtype for each in (*after, *gradients)} == {torch.float32}
        return [each.detach().cpu() for each in (*after, *gradients)]

    expected = run("cpu")
    tolerance = {"atol": 0.05, "rtol": 0.05} if is_half else {"atol": 1e-5, "rtol": 1e-5}
    for found, each in zip(run("cuda"), expected, strict=True):
        torch.testing.assert_close(found, each, **tolerance)
