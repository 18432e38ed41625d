"""The parts of a decoder's step; as a whole it is tested with the engine."""

import pytest
import torch

from dragoman.decoding.products import Int8Product, has_int8
from dragoman.eight_bits import round_matrix
from dragoman.kernels.decoder_step import (
    Matrix,
    Norm,
    attend_to_past,
    attend_to_source,
    look,
    multiply,
    normalise,
    read_word,
)
from dragoman.kernels.scripts import scripted
from dragoman.quantised import Quantised


@pytest.fixture(params=["script", "python"])
def run(request):
    return scripted if request.param == "script" else lambda function: function


def test_the_interpreter_takes_a_whole_step():
    assert isinstance(scripted(read_word), torch.jit.ScriptFunction)
    assert isinstance(scripted(multiply), torch.jit.ScriptFunction)


class LAYER:
    """Only what the attentions ask for; matrices that change nothing."""

    joined = Matrix(None, torch.eye(8).repeat(3, 1), None)
    own_output = query = source_output = Matrix(None, torch.eye(8), None)


@pytest.mark.parametrize("has_bias", [True, False])
def test_products_in_full_precision(run, has_bias):
    states, weight = torch.randn(3, 4), torch.randn(5, 4)
    bias = torch.randn(5) if has_bias else None
    found = run(multiply)(states, Matrix(None, weight, bias))
    torch.testing.assert_close(found, states @ weight.t() + (bias if has_bias else 0))


@pytest.mark.parametrize("has_bias", [True, False])
def test_products_in_eight_bits_depend_on_their_own_vector_alone(run, has_bias):
    if not has_int8():
        pytest.skip("needs FBGEMM")
    weight, bias = torch.randn(6, 8), torch.randn(6) if has_bias else None
    matrix = Int8Product(Quantised.of(round_matrix(weight.numpy())), bias).matrix
    states = torch.cat([torch.randn(3, 8), 1000 * torch.randn(1, 8), torch.zeros(1, 8)])
    found = run(multiply)(states, matrix)
    exact = states @ weight.t() + (bias if has_bias else 0)
    assert ((found - exact).abs().amax(1) <= 0.05 * states.norm(dim=1) + 1e-6).all()
    for row, state in zip(found, states, strict=True):
        assert torch.equal(run(multiply)(state[None], matrix)[0], row)


def test_norms(run):
    states, weight, bias = torch.randn(3, 4), torch.randn(4), torch.randn(4)
    centred = states - states.mean(1, keepdim=True)
    expected = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt() * weight + bias
    torch.testing.assert_close(run(normalise)(states, Norm(weight, bias, 1e-5)), expected)
    expected = states / (states.square().mean(1, keepdim=True) + 1e-5).sqrt() * weight
    torch.testing.assert_close(run(normalise)(states, Norm(weight, None, 1e-5)), expected)


def test_the_newest_words_are_written_down_and_look_at_their_ancestors():
    states = torch.randn(6, 8)  # two sentences of three hypotheses
    keys, values = torch.randn(2, 2, 7, 4), torch.randn(2, 2, 7, 4)
    before = keys.clone()
    mask = torch.full((2, 1, 3, 7), -torch.inf)
    mask[1, 0, 2, [0, 1, 5]] = 0  # the last hypothesis: two ancestors and itself
    mask[0, 0, :, 3] = mask[1, 0, :2, 3] = 0
    found = attend_to_past(states, LAYER, 0.5, keys, values, mask, 6)
    assert torch.equal(keys[:, :, :3], before[:, :, :3])
    assert torch.equal(keys[:, :, 6], before[:, :, 6])
    assert torch.equal(keys[:, :, 3:6].transpose(1, 2).reshape(6, 8), states)
    assert torch.equal(values[:, :, 3:6].transpose(1, 2).reshape(6, 8), states)
    weights = (keys[1, 1, [0, 1, 5]] @ states[5, 4:] * 0.5).softmax(0)
    torch.testing.assert_close(found[5, 4:], weights @ values[1, 1, [0, 1, 5]])


@pytest.mark.parametrize("between", [16, 48])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_neighbours_and_places_that_nobody_sees_change_no_bit(run, dtype, between):
    """A sentence alone, and among longer ones, whose memory has more blocks."""
    query = torch.randn(5, 4, 2, 64)
    keys, values = (torch.randn(5, 2, 32 + between, 64).to(dtype) for _ in range(2))
    mask = torch.full((5, 1, 4, 32 + between), -torch.inf)
    mask[..., :9] = 0
    mask[..., -16:-7] = 0
    together = run(look)(query, keys, values, mask, 0.125)
    shown = [*range(16), *range(32 + between - 16, 32 + between)]
    parts = (each[:1, ..., shown, :].contiguous() for each in (keys, values))
    alone = run(look)(query[:1], *parts, mask[:1, ..., shown], 0.125)
    assert torch.equal(alone, together[:4])


def test_hypotheses_look_at_the_source_of_their_sentence():
    states = torch.randn(6, 8)
    keys, values = torch.randn(2, 2, 5, 4), torch.randn(2, 2, 5, 4)
    mask = torch.zeros(2, 1, 1, 5)
    mask[1, :, :, 3:] = -torch.inf
    found = attend_to_source(states, LAYER, 0.5, keys, values, mask)
    weights = (keys[1, 0, :3] @ states[4, :4] * 0.5).softmax(0)
    torch.testing.assert_close(found[4, :4], weights @ values[1, 0, :3])
