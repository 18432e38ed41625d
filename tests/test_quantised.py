"""Matrices in eight bits are the nearest that their scales allow."""

from pathlib import Path

import pytest
import torch

from dragoman.eight_bits import SCALES, round_matrix
from dragoman.errors import FolderError
from dragoman.quantised import Quantised, restore, round_again


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


def test_what_was_whole_once_is_so_again():
    numbers = torch.randint(-127, 128, (6, 8))
    numbers[2] = 0
    steps = torch.full((6, 8), 1 / 37.4)
    steps[2] = 0  # a row that was added
    weights = {"one": numbers / 37.4, "bias": torch.randn(6)}
    found = round_again(weights, {"one": steps, "bias": torch.zeros(6)})
    assert found["one"].dtype == torch.int8
    assert torch.equal(found["one"].long(), numbers)
    torch.testing.assert_close(restore(found, Path("here"))["one"], weights["one"])
    assert torch.equal(found["bias"], weights["bias"])


@pytest.mark.parametrize("change", [0.4, 200.0])
def test_what_is_no_multiple_or_too_large_stays_as_it_is(change):
    weights = {"one": torch.ones(2, 3)}
    weights["one"][1, 1] += change
    found = round_again(weights, {"one": torch.ones(2, 3)})
    assert torch.equal(found["one"], weights["one"])
    assert "one" + SCALES not in found
