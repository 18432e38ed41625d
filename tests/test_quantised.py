"""Matrices in eight bits are the nearest that their scales allow."""

from pathlib import Path

import pytest
import torch

from dragoman.eight_bits import round_matrix
from dragoman.errors import FolderError
from dragoman.quantised import Quantised, restore


def test_each_entry_is_off_by_half_a_step_at_most():
    matrix = torch.randn(20, 30) * torch.logspace(-3, 3, 20)[:, None]
    found = Quantised.of(round_matrix(matrix.numpy()))
    assert found.numbers.dtype == torch.int8
    assert found.numbers.abs().amax(1).eq(127).all()
    steps = found.scales[:, None]
    assert ((found.restored() - matrix).abs() <= steps * 0.5001).all()


def test_a_row_of_zeros_stays_one():
    matrix = torch.randn(3, 4)
    matrix[1] = 0
    restored = Quantised.of(round_matrix(matrix.numpy())).restored()
    assert restored[1].eq(0).all()
    assert restored[0].ne(0).any()


def test_what_has_scales_is_restored_and_the_rest_is_left():
    quantised = Quantised(torch.tensor([[1, -2]], dtype=torch.int8), torch.tensor([0.5]))
    plain = torch.randn(3)
    found = restore({"a": quantised.numbers, "a.scales": quantised.scales, "b": plain}, Path("w"))
    assert found.keys() == {"a", "b"}
    assert torch.equal(found["a"], torch.tensor([[0.5, -1.0]]))
    assert found["b"] is plain


@pytest.mark.parametrize(
    ("numbers", "scales"),
    [
        (torch.zeros(2, 3, dtype=torch.int8), torch.ones(3)),
        (torch.zeros(2, 3, dtype=torch.int8), torch.ones(2, 1)),
        (torch.zeros(2, 3, dtype=torch.int8), torch.ones(2, dtype=torch.int64)),
        (torch.zeros(2, 3, dtype=torch.int32), torch.ones(2)),
        (torch.zeros(2, dtype=torch.int8), torch.ones(2)),
    ],
)
def test_scales_that_do_not_fit_are_refused(numbers, scales):
    with pytest.raises(FolderError) as caught:
        restore({"a": numbers, "a.scales": scales}, Path("w"))
    assert str(caught.value) == "w: damaged (a and its scales do not fit); get it again"
