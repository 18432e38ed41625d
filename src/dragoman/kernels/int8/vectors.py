"""What a Transformer does between its products, one vector at a time: norms, gates, attention.

Keys and values are kept in 16 bits, the upper half of those of a float32.
"""

import math

import numpy as np

from dragoman.kernels.int8.model import ACTIVATIONS
from dragoman.kernels.int8.tiles import as_float, as_int, compiled, compiled_freely

_RELU, _SWISH, _GELU, _GELU_SIGMOID, _SWIGLU, _GEGLU = range(len(ACTIVATIONS))

_f32, _i32 = np.float32, np.int32
_BITS = _f32(1 / np.log(2))
_HALF = _i32(16)


@compiled_freely
def power_of_two(exponent) -> float:
    """Raise 2 to a power.

    Parameters
    ----------
    exponent : float
        The power, at most 126; below −126 it counts as −126.

    Returns
    -------
    float
        The result, to two units of the last place.
    """
    exponent = max(exponent, _f32(-126))
    whole = np.rint(exponent)
    rest = exponent - whole
    found = _f32(1.5403530e-4)
    found = found * rest + _f32(1.3333558e-3)
    found = found * rest + _f32(9.6181291e-3)
    found = found * rest + _f32(5.5504109e-2)
    found = found * rest + _f32(2.4022651e-1)
    found = found * rest + _f32(6.9314718e-1)
    found = found * rest + _f32(1.0)
    return found * as_float((_i32(whole) + _i32(127)) << _i32(23))


@compiled
def widen(half) -> float:
    """Read a number of 16 bits.

    Parameters
    ----------
    half : int
        Its bits.

    Returns
    -------
    float
        The number.
    """
    return as_float(_i32(half) << _HALF)


@compiled
def shorten(numbers, halves) -> None:
    """Round numbers to 16 bits.

    Parameters
    ----------
    numbers : ndarray
        The numbers.
    halves : ndarray
        Where their bits are written; of two that are as near, the even ones.
    """
    for place in range(len(halves)):
        bits = as_int(numbers[place])
        even = (bits >> _HALF) & _i32(1)
        halves[place] = np.uint16(((bits + _i32(0x7FFF) + even) >> _HALF) & _i32(0xFFFF))


@compiled_freely
def moments(vector, width, is_centred) -> tuple[float, float]:
    """Find the mean and the variance of a vector's entries.

    Parameters
    ----------
    vector : ndarray
        The vector.
    width : int
        How many entries.
    is_centred : bool
        False: the mean counts as 0.

    Returns
    -------
    tuple[float, float]
        The mean and the variance.
    """
    total, squares = _f32(0), _f32(0)
    if is_centred:
        for place in range(width):
            total += vector[place]
    mean = total / _f32(width)
    for place in range(width):
        squares += (vector[place] - mean) * (vector[place] - mean)
    return mean, squares / _f32(width)


@compiled
def normalise(vector, norm, shape, normalised) -> None:
    """Normalise a vector.

    Parameters
    ----------
    vector : ndarray
        The vector.
    norm : ndarray
        Weight and bias.
    shape : Shape
        Whether the mean is subtracted, and what is added to the variance.
    normalised : ndarray
        Where the new one is written: not where the old one is, or one entry would have to wait for
        another.
    """
    width, weight, bias = norm.shape[1], norm[0], norm[1]
    mean, variance = moments(vector, width, shape.is_centred)
    scale = _f32(1) / np.sqrt(variance + _f32(shape.epsilon))
    for place in range(width):
        normalised[place] = (vector[place] - mean) * scale * weight[place] + bias[place]


@compiled_freely
def sigmoid(number) -> float:
    """Compute 1 / (1 + e⁻ˣ).

    Parameters
    ----------
    number : float
        x.

    Returns
    -------
    float
        Between 0 and 1.
    """
    small = power_of_two(-abs(number) * _BITS)
    return (_f32(1) if number > 0 else small) / (_f32(1) + small)


@compiled
def normal_share(number) -> float:
    """Say how much of a normal distribution lies below a number.

    Parameters
    ----------
    number : float
        The number.

    Returns
    -------
    float
        Between 0 and 1.
    """
    return _f32(0.5) * _f32(math.erfc(-number * _f32(math.sqrt(0.5))))


@compiled_freely
def activate(inner, count, width, kind) -> None:
    """Compute what happens between the matrices of a feed-forward layer.

    Parameters
    ----------
    inner : ndarray
        What the first says, one vector a row; overwritten.
    count : int
        How many of them.
    width : int
        Entries that the last matrix reads; a gate's follow them.
    kind : int
        A place in `ACTIVATIONS`.
    """
    for row in range(count):
        entries, gates = inner[row, :width], inner[row, width : 2 * width]
        if kind == _RELU:
            for place in range(width):
                entries[place] = max(entries[place], _f32(0))
        elif kind == _SWISH:
            for place in range(width):
                entries[place] *= sigmoid(entries[place])
        elif kind == _GELU_SIGMOID:
            for place in range(width):
                entries[place] *= sigmoid(_f32(1.702) * entries[place])
        elif kind == _SWIGLU:
            for place in range(width):
                entries[place] *= gates[place] * sigmoid(gates[place])
        elif kind == _GELU:
            for place in range(width):
                entries[place] *= normal_share(entries[place])
        else:
            for place in range(width):
                entries[place] *= gates[place] * normal_share(gates[place])


@compiled_freely
def score(query, key) -> float:
    """Multiply a query by a key.

    Parameters
    ----------
    query : ndarray
        One head's.
    key : ndarray
        Likewise, in 16 bits.

    Returns
    -------
    float
        The product.
    """
    total = _f32(0)
    for entry in range(len(query)):
        total += query[entry] * widen(key[entry])
    return total


@compiled_freely
def make_shares(scores, count) -> None:
    """Turn scores into shares of one.

    Parameters
    ----------
    scores : ndarray
        In units of log 2; overwritten.
    count : int
        How many.
    """
    top = scores[0]
    for index in range(count):
        top = max(top, scores[index])
    total = _f32(0)
    for index in range(count):
        scores[index] = power_of_two(scores[index] - top)
        total += scores[index]
    for index in range(count):
        scores[index] /= total


@compiled
def look(query, keys, values, places, count, num_heads, scale, shares, found) -> None:
    """Let one word look at others.

    Parameters
    ----------
    query : ndarray
        Its vector, head by head; the first entries are read.
    keys : ndarray
        One row a place, head by head, in 16 bits.
    values : ndarray
        Likewise.
    places : ndarray
        At which it looks; without signs, so that none counts from the end.
    count : int
        At how many of these.
    num_heads : int
        Heads.
    scale : float
        What scores are multiplied by.
    shares : ndarray
        Room for what each head gives each place.
    found : ndarray
        Where what it found is written, head by head.
    """
    key_dim, value_dim = keys.shape[1] // num_heads, values.shape[1] // num_heads
    steps = _f32(scale) * _BITS
    for index in range(count):
        key = keys[places[index]]
        for head in range(num_heads):
            own = slice(head * key_dim, (head + 1) * key_dim)
            shares[head, index] = score(query[own], key[own]) * steps
    for head in range(num_heads):
        make_shares(shares[head], count)
    found[: values.shape[1]] = 0
    for index in range(count):
        value = values[places[index]]
        for head in range(num_heads):
            share = shares[head, index]
            for entry in range(head * value_dim, (head + 1) * value_dim):
                found[entry] += share * widen(value[entry])
