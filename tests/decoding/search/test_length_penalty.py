"""The length penalty against its formula."""

import pytest
import torch

from dragoman.decoding.search.length_penalty import length_penalty


def test_length_penalty_is_its_formula():
    lengths = torch.tensor([1, 7, 13])
    torch.testing.assert_close(length_penalty(lengths, 1.0), torch.tensor([1.0, 2.0, 3.0]))
    assert length_penalty(lengths, 0.0).eq(1).all()
    assert length_penalty(25, 0.6) == pytest.approx(5**0.6)
