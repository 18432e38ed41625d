"""Normalisations against PyTorch's and their equations, and what batch normalisation breaks."""

import pytest
import torch
from torch import nn

from dragoman.errors import DataError
from dragoman.models.layers.normalisation import (
    BatchNorm,
    LayerNorm,
    RMSNorm,
    layer_norm,
    make_norm,
)

BATCH_KINDS = ["batch", "batch-per-step"]
OWN_KINDS = ["layer", "rms"]


def with_random_weights(module):
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


def make(kind):
    return with_random_weights(make_norm(kind, 8, 20))


def gradients_of(norm, states):
    states = states.clone().requires_grad_()
    out = norm(states)
    out.sin().sum().backward()
    return out, states.grad


# Layer normalisation and its relatives.


@pytest.mark.parametrize("spelt_out", [True, False])
def test_layer_norm_is_that_of_pytorch(spelt_out):
    own, oracle = LayerNorm(8).double(), nn.LayerNorm(8).double()
    with_random_weights(own)
    oracle.load_state_dict(own.state_dict())

    def norm(states):
        if spelt_out:
            return layer_norm(states, own.weight, own.bias, own.epsilon)
        return own(states)

    states = torch.randn(2, 5, 8, dtype=torch.float64) * 3 + 1
    out, gradient = gradients_of(norm, states)
    expected, expected_gradient = gradients_of(oracle, states)
    torch.testing.assert_close(out, expected, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-9, atol=1e-9)
    for name in ("weight", "bias"):
        found, wanted = getattr(own, name).grad, getattr(oracle, name).grad
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_rms_norm_is_its_equation():
    norm = with_random_weights(RMSNorm(8)).double()
    states = torch.randn(2, 5, 8, dtype=torch.float64) * 3 + 1

    def equation(states):
        return states / (states.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight

    for found, expected in zip(
        gradients_of(norm, states), gradients_of(equation, states), strict=True
    ):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_rms_norm_of_lower_precision_than_its_weight():
    out = make("rms")(torch.randn(2, 3, 8, dtype=torch.bfloat16))
    assert out.dtype == torch.float32


@pytest.mark.parametrize("kind", OWN_KINDS)
@pytest.mark.parametrize("training", [True, False])
def test_words_do_not_meet(kind, training):
    norm = make(kind).train(training)
    states = torch.randn(3, 6, 8)
    whole = norm(states)
    torch.testing.assert_close(norm(states[1:2, 2:3]), whole[1:2, 2:3])
    changed = states.clone()
    changed[:, 4:] += 1
    changed[0] += 1
    assert torch.equal(norm(changed)[1:, :4], whole[1:, :4])


@pytest.mark.parametrize("kind", OWN_KINDS)
def test_training_computes_what_evaluation_does(kind):
    norm = make(kind)
    states = torch.randn(3, 6, 8) + 5
    assert torch.equal(norm.train()(states), norm.eval()(states))


@pytest.mark.parametrize("kind", OWN_KINDS)
def test_one_word_alone_and_places_beyond_any_table(kind):
    norm = make(kind).train()
    assert norm(torch.randn(1, 1, 8), 100_000).abs().sum() > 1


# Batch normalisation.


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_is_that_of_pytorch(training):
    own = with_random_weights(BatchNorm(8, momentum=0.3)).double()
    oracle = nn.BatchNorm1d(8, momentum=0.3).double()
    with torch.no_grad():
        oracle.weight.copy_(own.weight)
        oracle.bias.copy_(own.bias)
    for seed in range(3):
        torch.manual_seed(seed)
        states = torch.randn(4, 5, 8, dtype=torch.float64) * 2 + seed
        oracle(states.mT)
        own(states)
    torch.testing.assert_close(own.running_mean, oracle.running_mean)
    torch.testing.assert_close(own.running_variance, oracle.running_var)
    own.train(training)
    oracle.train(training)
    found = gradients_of(own, states)
    expected = gradients_of(lambda each: oracle(each.mT).mT, states)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("training", [True, False])
def test_statistics_per_step_are_one_batch_norm_a_step(training):
    own = with_random_weights(BatchNorm(8, 0.3, per_step_positions=5)).double()
    oracles = [nn.BatchNorm1d(8, momentum=0.3).double() for _ in range(5)]
    for oracle in oracles:
        with torch.no_grad():
            oracle.weight.copy_(own.weight)
            oracle.bias.copy_(own.bias)
    states = torch.randn(4, 5, 8, dtype=torch.float64) * 2 + 1
    for module in (own, *oracles):
        module.train()
    own(states)
    for step, oracle in enumerate(oracles):
        oracle(states[:, step])
        torch.testing.assert_close(own.running_mean[step], oracle.running_mean)
        torch.testing.assert_close(own.running_variance[step], oracle.running_var)
        oracle.train(training)
    expected = torch.stack([each(states[:, step]) for step, each in enumerate(oracles)], dim=1)
    torch.testing.assert_close(own.train(training)(states), expected)


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_a_sentence_depends_on_the_others_in_training_only(kind):
    norm = make(kind)
    states = torch.randn(3, 6, 8)
    assert (norm(states[:2])[0] - norm(states)[0]).abs().max() > 0.1
    norm.eval()
    torch.testing.assert_close(norm(states[:1]), norm(states)[:1])


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_running_statistics_are_not_those_of_the_batch(kind):
    norm = make(kind)
    states = torch.randn(4, 6, 8) * 2 + 3
    trained = norm(states)
    assert (norm.eval()(states) - trained).abs().max() > 0.5


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_after_many_equal_batches_they_are(kind):
    norm = make(kind)
    states = torch.randn(40, 6, 8) * 2 + 3
    for _ in range(200):
        trained = norm(states)
    # Up to the factor of the unbiased variance.
    torch.testing.assert_close(norm.eval()(states), trained, rtol=0.02, atol=0.05)


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_online_learning_leaves_nothing_of_a_word(kind):
    norm = make(kind).train()
    word = torch.randn(1, 1, 8, requires_grad=True)
    out = norm(word)
    assert torch.equal(out[0, 0], norm.bias)
    out.sum().backward()
    assert not word.grad.any()
    assert norm.running_variance.isfinite().all()
    assert (norm.running_variance.view(-1, 8)[0] < 1).all()


def test_a_word_sees_later_words_in_training():
    norm = make("batch").train()
    states = torch.randn(2, 6, 8)
    before = norm(states)[:, :3]
    states[:, 4:] += 5
    assert (norm(states)[:, :3] - before).abs().max() > 0.1


def test_statistics_per_step_do_not_leak_through_time():
    norm = make("batch-per-step").train()
    states = torch.randn(2, 6, 8)
    before = norm(states)[:, :3]
    states[:, 4:] += 5
    assert torch.equal(norm(states)[:, :3], before)


def test_no_statistics_beyond_the_lengths_of_training():
    norm = make("batch-per-step").train()
    for _ in range(50):
        norm(torch.randn(16, 6, 8) * 2 + 3)
    norm.eval()
    assert (norm.running_mean[6:] == 0).all()
    assert (norm.running_variance[6:] == 1).all()
    out = norm(torch.randn(200, 7, 8) * 2 + 3)
    plain = (out - norm.bias) / norm.weight
    assert plain[:, :6].mean().abs() < 0.2
    assert plain[:, 6].mean() > 2.5


@pytest.mark.parametrize("training", [True, False])
def test_no_statistics_beyond_the_table(training):
    norm = make("batch-per-step").train(training)
    norm(torch.randn(2, 20, 8))
    for states, first in ((torch.randn(2, 21, 8), 0), (torch.randn(2, 1, 8), 20)):
        with pytest.raises(DataError) as caught:
            norm(states, first)
        assert str(caught.value) == (
            "a sequence of 21 subwords is longer than the 20 time steps whose statistics the "
            "model's batch normalisation keeps; lower max_length or raise max_positions"
        )


@pytest.mark.parametrize("kind", OWN_KINDS + BATCH_KINDS)
def test_word_by_word_in_evaluation(kind):
    norm = make(kind).train()
    for _ in range(3):
        norm(torch.randn(4, 9, 8) * 2 + torch.arange(9.0)[:, None])
    norm.eval()
    states = torch.randn(4, 9, 8)
    whole = norm(states)
    for place in range(9):
        one = norm(states[:, place : place + 1], place)
        torch.testing.assert_close(one, whole[:, place : place + 1])


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_statistics_are_saved(kind):
    norm = make(kind).train()
    norm(torch.randn(4, 9, 8) + 3)
    other = make_norm(kind, 8, 20)
    other.load_state_dict(norm.state_dict())
    states = torch.randn(4, 9, 8)
    assert torch.equal(norm.eval()(states), other.eval()(states))


@pytest.mark.parametrize("kind", BATCH_KINDS)
def test_statistics_are_exact_for_low_precision(kind):
    states = (torch.randn(64, 6, 8) + 100).bfloat16()
    low, high = make(kind).train(), make(kind).train()
    low(states)
    high(states.float())
    torch.testing.assert_close(low.running_variance, high.running_variance)


@pytest.mark.parametrize("kind", OWN_KINDS + BATCH_KINDS)
def test_on_the_meta_device(kind):
    with torch.device("meta"):
        norm = make_norm(kind, 8, 20)
        assert norm(torch.randn(2, 5, 8)).shape == (2, 5, 8)


def test_names_of_weights():
    assert set(make("layer").state_dict()) == {"weight", "bias"}
    assert set(make("rms").state_dict()) == {"weight"}
    for kind in BATCH_KINDS:
        statistics = {"running_mean", "running_variance"}
        assert set(make(kind).state_dict()) == {"weight", "bias"} | statistics
