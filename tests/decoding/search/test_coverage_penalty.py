"""The coverage penalty against its formula."""

import math

import pytest
import torch

from dragoman.decoding.search.coverage_penalty import coverage_penalty


def test_coverage_penalty_is_its_formula():
    coverage = torch.tensor([[[0.5, 1.7, 0.1, 1.0], [3.0, 1.0, 2.0, 1.0]]])
    expected = 0.3 * (math.log(0.5) + math.log(0.1))
    torch.testing.assert_close(coverage_penalty(coverage, 0.3), torch.tensor([[expected, 0.0]]))
    assert not coverage_penalty(coverage, 0.0).any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_unseen_words_cost_much_but_not_everything(dtype):
    coverage = torch.tensor([[[0.0, 1.0], [1e-6, 1.0]]], dtype=dtype)
    unseen, seen = coverage_penalty(coverage, 0.2)[0].tolist()
    assert -math.inf < unseen < seen < 0
