"""Functions that PyTorch runs by itself, without asking Python for every operation."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

import torch


@functools.cache
def scripted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Hand a function to PyTorch's interpreter of scripts.

    Parameters
    ----------
    function : Callable[..., Any]
        Written in the part of Python that the interpreter knows; its annotations are read.

    Returns
    -------
    Callable[..., Any]
        The same function: run by the interpreter, or where there is none, or no source to read,
        by Python.

    Notes
    -----
    PyTorch calls its interpreter deprecated, but has nothing else that runs whole functions on a
    machine without a compiler. If it goes one day, this costs speed and nothing else.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made: Callable[..., Any] = torch.jit.script(function)
    except (AttributeError, OSError, RuntimeError):
        return function
    return made
