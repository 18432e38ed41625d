"""The loss of two predictions, chunk by chunk, equals plain autograd."""

import pytest
import torch
from torch.nn import functional

from dragoman.kernels.training import consistent_cross_entropy as kernel
from dragoman.kernels.training.consistent_cross_entropy import Parts, consistent_cross_entropy
from dragoman.kernels.training.cross_entropy import plain_cross_entropy, projected_cross_entropy

PAD = 2
R_DROP, SIMCUT, MIXED = (
    Parts(0.5, 0.5, 1.25, 1.25),
    Parts(1.0, 0.0, 3.0, 0.0),
    Parts(0.3, 0.8, 2.0, 0.7),
)


def example(num_words=31, num_positions=23, dtype=torch.float64):
    torch.manual_seed(5)
    first, second = torch.randn(2, num_positions, 8, dtype=dtype)
    words = torch.randn(num_words, 8, dtype=dtype)
    targets = torch.randint(3, num_words, (num_positions,), dtype=torch.int32)
    targets[-4:] = PAD
    return [each.requires_grad_() for each in (first, second, words)], targets


def plain(first, second, words, targets, smoothing, parts):
    """The equation, through PyTorch's own divergence, with whole logits."""
    scores = [each @ words.t() for each in (first, second)]
    is_word = torch.arange(len(words)) != PAD
    log_p, log_q = (each[:, is_word].log_softmax(1) for each in scores)
    apart = functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(1)
    back = functional.kl_div(log_p, log_q, reduction="none", log_target=True).sum(1)
    apart, back = (each.where(targets != PAD, 0.0).sum() for each in (apart, back))
    entropies = [plain_cross_entropy(each, targets, PAD, smoothing).sum() for each in scores]
    return sum(weight * each for weight, each in zip(parts, (*entropies, apart, back), strict=True))


@pytest.mark.parametrize("parts", [R_DROP, SIMCUT, MIXED], ids=["r-drop", "simcut", "mixed"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [100, 1 << 20])
def test_loss_and_gradients_are_those_of_autograd(parts, smoothing, chunk, monkeypatch):
    monkeypatch.setattr(kernel, "CHUNK_ELEMENTS", {"cpu": chunk})
    leaves, targets = example()
    found = consistent_cross_entropy(*leaves, targets, PAD, smoothing, parts)
    expected = plain(*leaves, targets, smoothing, parts)
    torch.testing.assert_close(found, expected)
    ours = torch.autograd.grad(found * 0.5, leaves)
    theirs = torch.autograd.grad(expected * 0.5, leaves)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    assert not ours[2][PAD].any()
    assert not ours[0][-4:].any()
    assert not ours[1][-4:].any()


def test_without_divergence_it_is_cross_entropy():
    leaves, targets = example(dtype=torch.float32)
    found = consistent_cross_entropy(*leaves, targets, PAD, 0.1, Parts(1.0, 0.0, 0.0, 0.0))
    expected = projected_cross_entropy(leaves[0], leaves[2], targets, PAD, 0.1)
    torch.testing.assert_close(found, expected)


def test_equal_predictions_are_not_apart():
    (first, _, words), targets = example()
    found = consistent_cross_entropy(first, first, words, targets, PAD, 0.1, R_DROP)
    expected = projected_cross_entropy(first, words, targets, PAD, 0.1)
    torch.testing.assert_close(found, expected)


def test_half_precision_is_summed_in_full():
    leaves, targets = example(dtype=torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        found = consistent_cross_entropy(*leaves, targets, PAD, 0.1, R_DROP)
    rounded = [each.detach().bfloat16().double().requires_grad_() for each in leaves]
    expected = plain(*rounded, targets, 0.1, R_DROP)
    assert found.dtype == torch.float32
    assert abs(found.item() / expected.item() - 1) < 0.01
    for one, other in zip(
        torch.autograd.grad(found, leaves), torch.autograd.grad(expected, rounded), strict=True
    ):
        assert one.dtype == torch.float32
        assert (one - other).norm() < 0.02 * other.norm()


def test_scores_far_apart_do_no_harm():
    (first, second, words), targets = example(dtype=torch.float32)
    found = consistent_cross_entropy(100 * first, 100 * second, words, targets, PAD, 0.1, MIXED)
    assert found.isfinite()
    for grad in torch.autograd.grad(found, (first, second, words)):
        assert grad.isfinite().all()


def test_nobody_wants_a_gradient():
    leaves, targets = example()
    with torch.no_grad():
        found = consistent_cross_entropy(*leaves, targets, PAD, 0.1, MIXED)
    torch.testing.assert_close(found, plain(*leaves, targets, 0.1, MIXED))


@pytest.mark.parametrize("parts", [R_DROP, SIMCUT, MIXED], ids=["r-drop", "simcut", "mixed"])
@pytest.mark.parametrize("block", [8, 4096])
def test_the_kernel_does_the_same(parts, block, precision, close, device, monkeypatch):
    dtype, error = precision
    monkeypatch.setattr(kernel, "VOCABULARY_BLOCK", block)
    leaves, targets = example(dtype=torch.float32)
    ours = [each.detach().to(device).requires_grad_() for each in leaves]
    exact = [each.detach().to(dtype).double().requires_grad_() for each in leaves]
    with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
        found = consistent_cross_entropy(*ours, targets.to(device), PAD, 0.1, parts)
    expected = plain(*exact, targets, 0.1, parts)
    close(found, expected, error)
    found.backward()
    expected.backward()
    for one, other in zip(ours, exact, strict=True):
        close(one.grad, other.grad, 4 * error)
    assert not ours[2].grad[PAD].any()
