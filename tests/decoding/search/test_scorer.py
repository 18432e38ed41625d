"""Faster sums and maxima against PyTorch's own."""

import pytest
import torch

from dragoman.decoding.search.scorer import PART_ROWS, Scorer, WordScores, find_largest, log_sum_exp


@pytest.mark.parametrize("shape", [(1, 1, 7), (3, 4, 1000), (9, 2, 5003)])
def test_log_sum_exp_is_pytorchs(shape):
    torch.manual_seed(1)
    logits = torch.randn(shape) * 9 - 40
    logits[..., 2] = -torch.inf
    expected = logits.logsumexp(-1, keepdim=True)
    torch.testing.assert_close(log_sum_exp(logits), expected, atol=1e-5, rtol=1e-6)


@pytest.mark.parametrize("size", [5, 511, 512, 4096, 5003])
@pytest.mark.parametrize("count", [1, 8])
def test_largest_are_pytorchs(size, count):
    """With a vocabulary that is cut into blocks, with a rest or without, and one that is not."""
    torch.manual_seed(size + count)
    logits = torch.randn(3, 4, size)
    logits[0, 0, -1] = 9.0
    expected = logits.topk(min(count, size))
    scores, words = find_largest(logits, count)
    assert torch.equal(scores, expected.values)
    assert torch.equal(words, expected.indices)


def test_scores_are_log_probabilities_of_all_words_but_banned_ones_are_impossible():
    torch.manual_seed(3)
    logits = torch.randn(2, 3, 40)
    scores = Scorer(lambda hidden: hidden.clone(), banned_ids=(5, 7)).score(logits)
    expected = logits.log_softmax(-1)
    expected[:, :, [5, 7]] = -torch.inf
    words = torch.arange(40).expand(2, 3, 40)
    torch.testing.assert_close(scores.of(words), expected)
    best, found = scores.best(4)
    torch.testing.assert_close(best, expected.topk(4).values)
    assert torch.equal(found, expected.topk(4).indices)


def test_nobody_pays_for_probabilities_that_nobody_needs():
    logits = torch.randn(2, 1, 40)
    scores = Scorer(lambda hidden: hidden, is_normalised=False).score(logits)
    assert isinstance(scores, WordScores)
    assert scores.normaliser is None
    assert torch.equal(scores.best(1)[0], logits.topk(1).values)


def test_half_precision_is_scored_in_full():
    logits = torch.randn(1, 1, 40, dtype=torch.bfloat16)
    scores = Scorer(lambda hidden: hidden).score(logits)
    expected = logits.float().log_softmax(-1)
    torch.testing.assert_close(scores.of(torch.arange(40).view(1, 1, -1)), expected)


def test_parts_say_what_the_whole_says():
    torch.manual_seed(4)
    sizes = []

    def output(hidden):
        sizes.append(hidden.shape[:2].numel())
        return hidden.clone()

    logits = torch.randn(PART_ROWS, 3, 40)
    whole = Scorer(torch.clone, banned_ids=(5,)).score(logits)
    parts = Scorer(output, banned_ids=(5,)).score_in_chunks(logits)
    for found, expected in zip(parts.best(4), whole.best(4), strict=True):
        torch.testing.assert_close(found, expected)
    words = torch.randint(40, (PART_ROWS, 3, 2))
    torch.testing.assert_close(parts.of(words), whole.of(words))
    assert sizes == [PART_ROWS] * 6
    assert isinstance(Scorer(output).score_in_chunks(logits[:4]), WordScores)
