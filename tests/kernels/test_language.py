"""What kernels share, and life without Triton."""

import subprocess
import sys

import pytest
import torch

from dragoman.kernels import language

WITHOUT_TRITON = """
import sys
sys.modules["triton"] = None  # importing it fails
import torch
from dragoman.kernels import language
from dragoman.models.build import build_model
assert not language.has_triton
assert not language.uses_kernels(torch.ones(1))
"""


def test_everything_is_there_without_triton():
    subprocess.run([sys.executable, "-c", WITHOUT_TRITON], check=True)


def test_kernels_are_for_cuda():
    assert not language.uses_kernels(torch.ones(1))


@pytest.mark.parametrize(("number", "expected"), [(1, 16), (16, 16), (17, 32), (512, 512)])
def test_blocks_are_powers_of_two(number, expected):
    assert language.next_power(number) == expected


def test_products_are_computed_as_autocast_says():
    states = torch.ones(2)
    assert language.working_type(states) == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert language.working_type(states) == torch.bfloat16
    assert language.working_type(torch.ones(2, device="meta")) == torch.float32


def test_rows_are_summed(device, close):
    partial = torch.randn(150, 37, device=device)
    close(language.sum_rows(partial), partial.double().sum(0), 1e-6)


def test_a_seed_is_drawn_from_pytorch():
    cpu = torch.device("cpu")
    torch.manual_seed(1)
    first, second = language.draw_seed(cpu), language.draw_seed(cpu)
    assert first != second
    torch.manual_seed(1)
    assert language.draw_seed(cpu) == first
