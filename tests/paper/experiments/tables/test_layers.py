"""Bare layers compute what they are named after."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from dragoman.paper.experiments.tables.layers import Unchanged, list_layers, make_pass

KINDS = {kind.name: kind for kind in list_layers(3, 6)}


@pytest.fixture
def words():
    torch.manual_seed(1)
    return torch.randn(1, 20, 8)


def test_attention_is_equation_1(words):
    found = KINDS["self-attention"].make(8)(words)
    torch.testing.assert_close(found, functional.scaled_dot_product_attention(words, words, words))


def test_restricted_attention_is_masked_attention(words):
    places = torch.arange(20)
    near = (places[:, None] - places).abs() <= 3
    expected = functional.scaled_dot_product_attention(words, words, words, attn_mask=near)
    torch.testing.assert_close(KINDS["self-attention (restricted)"].make(8)(words), expected)


@pytest.mark.parametrize("name", KINDS)
def test_both_forms_compute_the_same(name, words):
    found = []
    for make in (KINDS[name].make, KINDS[name].make_spelt_out):
        torch.manual_seed(2)
        found.append(make(8)(words))
    torch.testing.assert_close(*found)
    assert found[0].shape == words.shape


def test_recurrence_is_that_of_pytorch(words):
    torch.manual_seed(2)
    layer = KINDS["recurrent"].make(8)
    torch.manual_seed(2)
    from dragoman.models.recurrent.cells import RNNCell

    cell, theirs = RNNCell(8, 8), nn.RNN(8, 8, batch_first=True)
    weights = (cell.weight_input, cell.weight_hidden, cell.bias, torch.zeros(8))
    for parameter, weight in zip(theirs.parameters(), weights, strict=True):
        parameter.data.copy_(weight)
    torch.testing.assert_close(layer(words), theirs(words)[0])


def test_a_pass_goes_there_and_back_and_leaves_nothing(words):
    calls = []

    def layer(given):
        calls.append(given.requires_grad)
        return given * 2

    make_pass(layer, words)()
    assert calls == [True]
    assert words.grad is None


def test_unchanged_passes_on(words):
    same = Unchanged(8)
    assert same(words) is words
    assert same.in_features == 8
