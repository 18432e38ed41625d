"""View tensors as NumPy arrays that compiled functions read and write, float32 or bfloat16.

NumPy has no bfloat16: such a tensor is viewed as 16-bit integers, the upper
half of those of a float32.
"""

import functools
from typing import NamedTuple

import numpy as np
import torch
from numba.core import types
from numba.extending import overload, register_jitable
from torch import Tensor

from dragoman.kernels.cpu_search.compiler.instructions import as_float, as_int
from dragoman.kernels.language import dropout_threshold

_i32 = np.int32


class Drop(NamedTuple):
    """Arguments of dropout: both halves of the seed, a threshold, and the scale of kept entries.

    A threshold of 0 keeps everything.
    """

    seed_low: np.uint32
    seed_high: np.uint32
    threshold: np.uint32
    scale: np.float32


def make_drop(share: float, seed: int) -> Drop:
    """Prepare the arguments of dropout."""
    return Drop(
        np.uint32(seed & 0x7FFFFFFF),
        np.uint32(seed >> 31 & 0x7FFFFFFF),
        np.uint32(min(dropout_threshold(share), (1 << 32) - 1)),
        np.float32(1 / (1 - share)),
    )


def as_array(tensor: Tensor) -> np.ndarray:
    """View a tensor on the CPU as an array."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy()
    return tensor.numpy()


@functools.cache
def no_array(dtype: torch.dtype, num_axes: int) -> np.ndarray:
    """Make an empty array that stands for a missing argument."""
    return as_array(torch.empty((0,) * num_axes, dtype=dtype))


def read(_value: float) -> float:
    """Read an entry of an array as float32 (in compiled functions only)."""
    raise NotImplementedError


@overload(read, inline="always")
def _read(value):
    if isinstance(value, types.Float):
        return lambda value: value
    return lambda value: as_float(_i32(value) << _i32(16))


def write(_array: np.ndarray, _place: int, _value: float) -> None:
    """Round a float32 to the type of an array and store it (in compiled functions only)."""
    raise NotImplementedError


@overload(write, inline="always")
def _write(array, place, value):
    if isinstance(array.dtype, types.Float):

        def store(array, place, value):
            array[place] = value
    else:

        def store(array, place, value):
            array[place] = to_bfloat16(value)

    return store


@register_jitable(inline="always")
def to_bfloat16(value):
    """Round a float32 to the bits of a bfloat16, ties to even (in compiled functions)."""
    bits = as_int(value)
    even = (bits >> _i32(16)) & _i32(1)
    return np.uint16(((bits + _i32(0x7FFF) + even) >> _i32(16)) & _i32(0xFFFF))


@register_jitable(inline="always")
def is_kept(seed_low, seed_high, place, threshold):
    """Decide whether dropout keeps a position: the hash of `dragoman.kernels.language.kept`."""
    # Numba widens integers to 64 bits; the hash has 32.
    value = np.uint32(np.uint32(place) * np.uint32(0x9E3779B1) + seed_low)
    value = np.uint32((value ^ (value >> np.uint32(16))) * np.uint32(0x7FEB352D))
    value = np.uint32((value ^ (value >> np.uint32(15))) + seed_high)
    value = np.uint32((value ^ (value >> np.uint32(16))) * np.uint32(0x846CA68B))
    return np.uint32(value ^ (value >> np.uint32(16))) >= threshold
