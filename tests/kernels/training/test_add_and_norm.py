"""Drop, add and normalise in one pass equals the three one after another."""

import pytest
import torch

from dragoman.kernels.training.add_and_norm import add_and_norm, add_then_norm, plain_add_then_norm


@pytest.mark.parametrize("dim", [48, 512])
@pytest.mark.parametrize("has_bias", [True, False], ids=["layer", "rms"])
def test_values_and_gradients_are_those_of_the_plain_way(dim, has_bias, precision, close, device):
    dtype, error = precision
    tensors = [torch.randn(7, 5, dim, device=device).to(dtype) for _ in range(2)]
    tensors += [torch.randn(dim, device=device) for _ in range(1 + has_bias)]
    ours = [each.clone().requires_grad_() for each in tensors]
    plain = [each.double().requires_grad_() for each in tensors]
    nothing = [] if has_bias else [None]
    found = add_and_norm(*ours, *nothing, 1e-5, 0.0)[0]
    expected = plain_add_then_norm(*plain, *nothing, 1e-5, 0.0)[1]
    assert found.dtype == dtype
    close(found, expected, error)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad.double())
    for one, other in zip(ours, plain, strict=True):
        assert one.grad.dtype == one.dtype
        close(one.grad, other.grad, error)


@pytest.mark.parametrize("read", ["both", "into", "around"])
def test_the_gradients_of_both_readers_are_added(read, close, device):
    tensors = [torch.randn(9, 32, device=device) for _ in range(2)]
    tensors += [torch.randn(32, device=device) for _ in range(2)]
    ours, plain = ([each.clone().requires_grad_() for each in tensors] for _ in range(2))
    into, around = add_and_norm(*ours, 1e-5, 0.0)
    normed = plain_add_then_norm(*plain, 1e-5, 0.0)[1]
    assert torch.equal(into, around)
    one, other = torch.randn_like(normed), torch.randn_like(normed)
    ways = {"both": (into * one + around * other, normed * (one + other)),
            "into": (into * one, normed * one),
            "around": (around * one, normed * one)}  # fmt: skip
    for each in ways[read]:
        each.sum().backward()
    for mine, expected in zip(ours, plain, strict=True):
        close(mine.grad, expected.grad, 2e-6)


def test_dropout_drops_its_share_and_the_way_back_drops_the_same(device):
    dim, share = 64, 0.3
    states = torch.zeros(300, dim, device=device)
    update = torch.ones(300, dim, device=device, requires_grad=True)
    weight = torch.ones(dim, device=device)
    # Without a mean to take away what was dropped is zero, and the rest of a row is one number.
    found = add_and_norm(states, update, weight, None, 0.0, share)[0]
    is_kept = found != 0
    deviation = (share * (1 - share) / found.numel()) ** 0.5
    assert abs(1 - is_kept.double().mean().item() - share) < 4 * deviation
    found.backward(torch.randn_like(found))
    assert torch.equal(update.grad != 0, is_kept)


def test_what_is_kept_is_scaled(device):
    size, weight = 4096, torch.ones(16, device=device)
    update = torch.ones(size, 16, device=device)
    # A large first summand makes the norm nearly linear in the second.
    states = torch.zeros(size, 16, device=device)
    states[:, 0] = 1000.0
    found = add_and_norm(states, update, weight, None, 0.0, 0.5)[0][:, 1:]
    assert found.max().item() == pytest.approx(2 / 250, rel=1e-2)
    assert found.mean().item() == pytest.approx(1 / 250, rel=0.05)


def test_two_calls_drop_independently_and_a_seed_repeats_them(device):
    states = torch.zeros(200, 64, device=device)
    update, weight = torch.ones_like(states), torch.ones(64, device=device)

    def kept():
        return (add_and_norm(states, update, weight, None, 0.0, 0.5)[0] != 0).double()

    torch.manual_seed(5)
    first, second = kept(), kept()
    torch.manual_seed(5)
    assert torch.equal(first, kept())
    for one, other in ((first, second), (first[:, 1:], first[:, :-1]), (first[1:], first[:-1])):
        agreement = (one == other).double().mean().item()
        assert abs(agreement - 0.5) < 4 * 0.5 / one.numel() ** 0.5


@pytest.mark.parametrize("dim", [48, 512])
@pytest.mark.parametrize("has_bias", [True, False], ids=["layer", "rms"])
@pytest.mark.parametrize("has_update", [True, False], ids=["sum", "first"])
def test_the_sum_goes_on_beside_its_norm(dim, has_bias, has_update, precision, close, device):
    dtype, error = precision
    tensors = [torch.randn(7, 5, dim, device=device).to(dtype) for _ in range(1 + has_update)]
    tensors += [torch.randn(dim, device=device) for _ in range(1 + has_bias)]
    ours = [each.clone().requires_grad_() for each in tensors]
    plain = [each.double().requires_grad_() for each in tensors]
    ways = []
    for way, (states, *rest) in ((add_then_norm, ours), (plain_add_then_norm, plain)):
        update = rest.pop(0) if has_update else None
        weight, bias = rest if has_bias else (*rest, None)
        ways.append(way(states, update, weight, bias, 1e-5, 0.0))
    grads = [torch.randn_like(each) for each in ways[0]]
    for one, other in zip(*ways, strict=True):
        assert one.dtype == dtype
        close(one, other, error)
    torch.autograd.backward(ways[0], grads)
    torch.autograd.backward(ways[1], [each.double() for each in grads])
    for one, other in zip(ours, plain, strict=True):
        assert one.grad.dtype == one.dtype
        close(one.grad, other.grad, error)


@pytest.mark.parametrize("read", ["sum", "norm"])
def test_one_reader_is_enough(read, close, device):
    tensors = [torch.randn(9, 32, device=device) for _ in range(2)]
    tensors += [torch.randn(32, device=device) for _ in range(2)]
    ours, plain = ([each.clone().requires_grad_() for each in tensors] for _ in range(2))
    place = ("sum", "norm").index(read)
    for way, given in ((add_then_norm, ours), (plain_add_then_norm, plain)):
        way(*given, 1e-5, 0.0)[place].sin().sum().backward()
    for mine, expected in zip(ours, plain, strict=True):
        wanted = torch.zeros_like(mine) if expected.grad is None else expected.grad
        close(mine.grad, wanted, 2e-6)


def test_what_was_dropped_of_a_sum_is_dropped_on_the_way_back(device):
    states = torch.zeros(300, 64, device=device, requires_grad=True)
    update = torch.ones(300, 64, device=device, requires_grad=True)
    weight = torch.ones(64, device=device)
    total, _ = add_then_norm(states, update, weight, None, 0.0, 0.3)
    is_kept = total != 0
    torch.testing.assert_close(total[is_kept], torch.full_like(total[is_kept], 1 / 0.7))
    assert abs(1 - is_kept.double().mean().item() - 0.3) < 4 * (0.21 / total.numel()) ** 0.5
    grad = torch.rand_like(total) + 1
    total.backward(grad)
    assert torch.equal(states.grad, grad)
    torch.testing.assert_close(update.grad, torch.where(is_kept, grad / 0.7, 0.0))
