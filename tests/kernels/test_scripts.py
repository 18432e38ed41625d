"""Scripts: the same results by PyTorch's interpreter, and by Python where there is none."""

import warnings

import torch
from torch import Tensor

from dragoman.kernels.scripts import scripted


def double(states: Tensor, times: int) -> Tensor:
    for _ in range(times):
        states = states * 2
    return states


THREE = 3


def beyond_the_interpreter(states: Tensor) -> Tensor:
    return states * THREE  # which it does not see


def test_a_script_says_what_its_function_says():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = scripted(double)
    assert isinstance(run, torch.jit.ScriptFunction)
    assert torch.equal(run(torch.ones(2), 3), torch.full((2,), 8.0))
    assert scripted(double) is run


def test_what_cannot_be_a_script_stays_python():
    run = scripted(beyond_the_interpreter)
    assert run is beyond_the_interpreter
    assert torch.equal(run(torch.ones(2)), torch.full((2,), 3.0))
