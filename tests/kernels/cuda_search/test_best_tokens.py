"""The best words found in one pass are those that sorting finds."""

import pytest
import torch

from dragoman.kernels.cuda_search.best_tokens import BLOCK, BLOCKS, best_words, plain_best_words


def make_standing(size, device):
    standing = torch.zeros(size, dtype=torch.uint8, device=device)
    standing[1], standing[2] = 1, 2
    return standing


@pytest.mark.parametrize("count", [1, 8, 16])
@pytest.mark.parametrize("size", [5, BLOCK, 3 * BLOCK + 1, BLOCK * BLOCKS, BLOCK * BLOCKS + 300])
def test_kernels_find_what_sorting_finds(size, count, device):
    logits = torch.randn(3, size, device=device) * 4
    standing = make_standing(size, device)
    found, expected = (each(logits, standing, count) for each in (best_words, plain_best_words))
    torch.testing.assert_close(found.normalisers, expected.normalisers)
    torch.testing.assert_close(found.logs, expected.logs)
    is_there = expected.logs > -torch.inf
    assert torch.equal(found.words[is_there], expected.words[is_there])
    for each in (found, expected):  # a word that exists, for what never lives
        assert not each.words[~is_there].any()


def test_what_must_not_come_counts_but_padding_does_not(device):
    logits = torch.tensor([[1.0, 9.0, 50.0, 3.0, 2.0]], device=device)
    logs, words, normalisers = best_words(logits, make_standing(5, device), 4)
    expected = torch.tensor([1.0, 9.0, 3.0, 2.0]).logsumexp(0).item()
    assert normalisers.tolist() == pytest.approx([expected])
    assert words[0, :3].tolist() == [3, 4, 0]
    assert logs[0].tolist() == pytest.approx([3 - expected, 2 - expected, 1 - expected, -torch.inf])


@pytest.mark.gpu
def test_half_precision_is_normalised_in_full():
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    logits = (torch.randn(8, 37_056, device="cuda") * 3).half()
    standing = make_standing(37_056, "cuda")
    found, expected = (each(logits, standing, 8) for each in (best_words, plain_best_words))
    torch.testing.assert_close(found.logs, expected.logs)
