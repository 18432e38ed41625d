"""The simple recurrent unit says what its equations say, all words at once or one by one."""

import pytest
import torch
from torch import nn

from dragoman.models.attention.ssru import SSRU, scan


def spelt_out(forget, update):
    cell, cells = torch.zeros_like(forget[:, 0]), []
    for place in range(forget.size(1)):
        cell = forget[:, place] * cell + update[:, place]
        cells.append(cell)
    return torch.stack(cells, dim=1)


@pytest.mark.parametrize("length", [1, 2, 3, 8, 13])
def test_cells_are_those_of_the_recurrence(length):
    torch.manual_seed(length)
    forget = torch.rand(2, length, 5, dtype=torch.float64, requires_grad=True)
    update = torch.randn(2, length, 5, dtype=torch.float64, requires_grad=True)
    torch.testing.assert_close(scan(forget, update), spelt_out(forget, update))
    weights = torch.randn(2, length, 5, dtype=torch.float64)
    found, expected = (
        torch.autograd.grad(
            (way(forget, update) * weights).sum(), (forget, update), materialize_grads=True
        )
        for way in (scan, spelt_out)
    )
    torch.testing.assert_close(found, expected)


def test_it_is_the_published_equation():
    torch.manual_seed(1)
    cell, states = SSRU(6), torch.randn(2, 5, 6)
    forget = torch.sigmoid(states @ cell.forget.weight.T + cell.forget.bias)
    expected = spelt_out(forget, (1 - forget) * (states @ cell.update.weight.T)).relu()
    torch.testing.assert_close(cell.attend(states, None), expected)


def test_word_by_word_is_all_at_once():
    torch.manual_seed(2)
    cell, states = SSRU(6), torch.randn(3, 7, 6)
    whole, cache = cell.attend(states, None), cell.start(3, 7, states)
    for place in range(7):
        found, cache = cell.step(states[:, place : place + 1], cache, place)
        torch.testing.assert_close(found[:, 0], whole[:, place])
        if place == 3:  # hypotheses change places
            order = torch.tensor([2, 0, 0])
            cache, states, whole = cache.rows(order, place), states[order], whole[order]


def test_later_words_change_nothing():
    torch.manual_seed(3)
    cell, states = SSRU(4), torch.randn(1, 6, 4)
    other = states.clone()
    other[:, 4:] = 9
    assert torch.equal(cell.attend(states, None)[:, :4], cell.attend(other, None)[:, :4])


def test_half_precision_keeps_cells_exact():
    cell = SSRU(4).half()
    states = torch.randn(2, 3, 4).half()
    found, cache = cell.step(states[:, :1], cell.start(2, 3, states), 0)
    assert found.dtype == torch.float16
    assert cache.cell.dtype == torch.float32
    assert cell.attend(states, None).dtype == torch.float16


def test_only_the_gate_has_a_bias():
    names = {name for name, _ in SSRU(4).named_parameters()}
    assert names == {"forget.weight", "forget.bias", "update.weight"}
    assert isinstance(SSRU(4).update, nn.Linear)
