"""Looking words and places up in one pass equals PyTorch's embeddings."""

import pytest
import torch

from dragoman.kernels.training.token_embedding import embed_tokens, plain_embed_tokens

PAD = 2


@pytest.fixture
def tokens(device):
    ids = torch.randint(0, 30, (90,), device=device, dtype=torch.int32)
    ids[40:] = 7  # one word more often than a block has rows
    ids[5:9] = PAD
    return ids, torch.randint(0, 11, (90,), device=device, dtype=torch.int32)


@pytest.mark.parametrize("has_positions", [True, False])
def test_values_and_gradients_are_those_of_pytorch(tokens, has_positions, close, device):
    ids, places = tokens
    words = torch.randn(33, 40, device=device)
    positions = torch.randn(11, 40, device=device) if has_positions else None
    ours, plain = (words.clone().requires_grad_() for _ in range(2))
    found = embed_tokens(ours, ids, positions, places, 3.0, 0.0, PAD)
    expected = plain_embed_tokens(plain, ids, positions, places, 3.0, 0.0, PAD)
    close(found, expected, 1e-6)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected.backward(grad)
    close(ours.grad, plain.grad, 1e-6)
    assert not ours.grad[PAD].any()


def test_the_same_gradient_bit_by_bit(tokens, device):
    ids, places = tokens
    words = torch.randn(33, 40, device=device, requires_grad=True)
    grad = torch.randn(90, 40, device=device)
    first, second = (
        torch.autograd.grad(embed_tokens(words, ids, None, places, 1.0, 0.0, PAD), words, grad)[0]
        for _ in range(2)
    )
    assert torch.equal(first, second)


def test_learnt_positions_get_their_gradient(tokens, close, device):
    ids, places = tokens
    words, positions = torch.randn(33, 40, device=device), torch.randn(11, 40, device=device)
    positions.requires_grad_()
    found = embed_tokens(words, ids, positions, places, 1.0, 0.0, PAD)
    grad = torch.randn_like(found)
    found.backward(grad)
    expected = torch.zeros(11, 40, device=device).index_add_(0, places.long(), grad)
    close(positions.grad, expected, 1e-6)


def test_the_way_back_drops_what_was_dropped(tokens, device):
    ids = torch.arange(3, 33, device=device, dtype=torch.int32)
    words = torch.ones(33, 40, device=device, requires_grad=True)
    found = embed_tokens(words, ids, None, torch.zeros_like(ids), 2.0, 0.4, PAD)
    assert found.unique().tolist() == pytest.approx([0.0, 2 / 0.6])
    share = (found == 0).double().mean().item()
    assert abs(share - 0.4) < 4 * (0.24 / found.numel()) ** 0.5
    found.sum().backward()
    torch.testing.assert_close(words.grad[3:], found.detach())
