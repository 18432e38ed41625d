"""Projection and cross-entropy, chunk by chunk, equal the equation."""

import pytest
import torch
from torch.nn import functional

from dragoman.kernels import language
from dragoman.kernels.training import cross_entropy
from dragoman.kernels.training.cross_entropy import plain_cross_entropy, projected_cross_entropy

PAD = 2


@pytest.fixture(params=["kernel", "pytorch"])
def way(request, device, monkeypatch):
    """Through the kernel, or through PyTorch's operations."""
    if request.param == "pytorch":
        monkeypatch.setattr(language, "uses_kernels", lambda _: False)
    return request.param


def example(device, num_words=90, num_positions=37):
    hidden = torch.randn(num_positions, 16, device=device)
    words = torch.randn(num_words, 16, device=device)
    targets = torch.randint(3, num_words, (num_positions,), device=device, dtype=torch.int32)
    targets[-4:] = PAD
    return hidden, words, targets


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1000, 1 << 22])
def test_loss_and_gradients_are_those_of_the_equation(
    way, smoothing, chunk, precision, close, device, monkeypatch
):
    dtype, error = precision
    monkeypatch.setattr(cross_entropy, "CHUNK_ELEMENTS", {"cpu": chunk, "cuda": chunk})
    monkeypatch.setattr(cross_entropy, "VOCABULARY_BLOCK", 32)
    hidden, words, targets = example(device)
    ours = [each.clone().requires_grad_() for each in (hidden, words)]
    plain = [each.to(dtype).double().requires_grad_() for each in (hidden, words)]
    with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
        found = projected_cross_entropy(*ours, targets, PAD, smoothing)
    expected = plain_cross_entropy(plain[0] @ plain[1].t(), targets, PAD, smoothing).sum()
    close(found, expected, error)
    (found * 0.5).backward()
    (expected * 0.5).backward()
    for one, other in zip(ours, plain, strict=True):
        close(one.grad, other.grad, 2 * error)
    assert not ours[1].grad[PAD].any()


def test_the_equation_is_pytorchs_where_nothing_is_impossible():
    torch.manual_seed(1)
    logits, targets = torch.randn(9, 20, dtype=torch.float64), torch.randint(0, 19, (9,))
    # The padding stands at the end, so leaving its column out leaves the numbers of the others.
    expected = functional.cross_entropy(
        logits[:, :19], targets, label_smoothing=0.1, reduction="none"
    )
    torch.testing.assert_close(plain_cross_entropy(logits, targets, 19, 0.1), expected)


def test_large_scores_do_no_harm(way, device):
    hidden, words, targets = example(device)
    found = projected_cross_entropy(100 * hidden, 10 * words, targets, PAD, 0.1)
    assert found.isfinite()


def test_the_padding_counts_for_nothing_even_where_all_words_are_far_below_it(way, device, close):
    hidden, words, targets = example(device)
    words[PAD] = 0
    hidden[:, 0], words[torch.arange(90) != PAD, 0] = 10.0, -10.0  # scores of about −100 and 0
    hidden.requires_grad_()
    found = projected_cross_entropy(hidden, words, targets, PAD, 0.1)
    exact = hidden.detach().double().requires_grad_()
    expected = plain_cross_entropy(exact @ words.double().t(), targets, PAD, 0.1).sum()
    close(found, expected, 1e-5)
    found.backward()
    expected.backward()
    close(hidden.grad, exact.grad, 1e-4)


def test_nobody_wants_a_gradient(way, device, close):
    hidden, words, targets = example(device)
    expected = plain_cross_entropy(hidden @ words.t(), targets, PAD, 0.1).sum()
    with torch.no_grad():
        close(projected_cross_entropy(hidden, words, targets, PAD, 0.1), expected, 1e-5)


def test_memory_behind_rows_of_logits_does_not_enter_products(monkeypatch):
    """Products in tile registers read over the end of a row, where infinities would become NaN."""
    new_empty = torch.Tensor.new_empty

    def poisoned(tensor, *shape, **kwargs):
        return new_empty(tensor, *shape, **kwargs).fill_(float("nan"))

    monkeypatch.setattr(torch.Tensor, "new_empty", poisoned)
    hidden = torch.randn(33, 16, dtype=torch.bfloat16, requires_grad=True)
    words = torch.randn(47, 16, dtype=torch.bfloat16, requires_grad=True)
    targets = torch.arange(33) % 47
    projected_cross_entropy(hidden, words, targets, PAD, 0.1).backward()
    assert hidden.grad.isfinite().all()
    assert words.grad.isfinite().all()
    room = cross_entropy.make_room(hidden, 33, 47)
    assert not room._base[:, 47:].any()
