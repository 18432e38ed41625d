"""Operations on one vector at a time: norms, activations, attention, recurrent cells.

Keys and values are float32 or bfloat16 (the upper half of a float32).
"""

import math

import numpy as np

from dragoman.kernels.cpu_search.compiler.instructions import (
    EXP2_COEFFICIENTS,
    LOWEST_EXPONENT,
    as_float,
    as_int,
    compiled,
    compiled_freely,
    is_float,
    never_inline,
)
from dragoman.kernels.cpu_search.head_attention import look_32, look_48, look_64
from dragoman.kernels.cpu_search.model import ACTIVATIONS

_RELU, _SWISH, _GELU, _GELU_SIGMOID, _SWIGLU, _GEGLU = range(len(ACTIVATIONS))

_f32, _i32 = np.float32, np.int32
BITS = _f32(1 / np.log(2))
"""log₂ e: scores times this are exponents of 2, of which exponentials are cheap."""
_HALF = _i32(16)


@compiled_freely
def power_of_two(exponent) -> float:
    """Raise 2 to a power."""
    exponent = max(exponent, _f32(LOWEST_EXPONENT))
    whole = np.rint(exponent)
    rest = exponent - whole
    found = _f32(EXP2_COEFFICIENTS[0])
    for index in range(1, len(EXP2_COEFFICIENTS)):
        found = found * rest + _f32(EXP2_COEFFICIENTS[index])
    return found * as_float((_i32(whole) + _i32(127)) << _i32(23))


@compiled
def from_bfloat16(half) -> float:
    """Convert a bfloat16 to float32."""
    return as_float(_i32(half) << _HALF)


@compiled
def to_kv_type(numbers, halves) -> None:
    """Round numbers to bfloat16, or copy them where keys and values are float32."""
    if is_float(halves):
        for place in range(len(halves)):
            halves[place] = numbers[place]
        return
    for place in range(len(halves)):
        bits = as_int(numbers[place])
        even = (bits >> _HALF) & _i32(1)
        halves[place] = np.uint16(((bits + _i32(0x7FFF) + even) >> _HALF) & _i32(0xFFFF))


@compiled_freely
def mean_and_variance(vector, width, is_centred) -> tuple[float, float]:
    """Compute the mean and the variance of a vector's entries."""
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
    """Normalise a vector; `norm` is its weight and bias.

    `normalised` must not be `vector` itself, or one entry would have to wait for another.
    """
    width, weight, bias = norm.shape[1], norm[0], norm[1]
    mean, variance = mean_and_variance(vector, width, shape.is_centred)
    scale = _f32(1) / np.sqrt(variance + _f32(shape.epsilon))
    for place in range(width):
        normalised[place] = (vector[place] - mean) * scale * weight[place] + bias[place]


@compiled
def rectify(number) -> float:
    """Compute max(0, x) by its bits, which LLVM vectorises."""
    bits = as_int(number)
    return as_float(bits & ~(bits >> _i32(31)))


@compiled_freely
def sigmoid(number) -> float:
    """Compute 1 / (1 + e⁻ˣ)."""
    small = power_of_two(-abs(number) * BITS)
    return (_f32(1) if number > 0 else small) / (_f32(1) + small)


@compiled
def normal_cdf(number) -> float:
    """Compute the cumulative distribution function of the normal distribution."""
    return _f32(0.5) * _f32(math.erfc(-number * _f32(math.sqrt(0.5))))


@compiled_freely
def activate(inner, count, width, kind) -> None:
    """Apply the activation of a feed-forward layer in place."""
    for row in range(count):
        entries, gates = inner[row, :width], inner[row, width : 2 * width]
        if kind == _RELU:
            for place in range(width):
                entries[place] = rectify(entries[place])
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
                entries[place] *= normal_cdf(entries[place])
        else:
            for place in range(width):
                entries[place] *= gates[place] * normal_cdf(gates[place])


@compiled_freely
def update_cell(gates, before, cell, told) -> None:
    """Advance a recurrent cell by one token."""
    width = len(cell)
    for entry in range(width):
        kept = sigmoid(gates[entry])
        value = kept * before[entry] + (_f32(1) - kept) * gates[width + entry]
        cell[entry] = value
        told[entry] = rectify(value)


@compiled_freely
def score_key(query, keys, place) -> float:
    """Compute the dot product of a query and a key."""
    total = _f32(0)
    for entry in range(len(query)):
        key = keys[place, entry]
        total += query[entry] * (_f32(key) if is_float(keys) else from_bfloat16(key))
    return total


@compiled_freely
def softmax_in_place(scores, count) -> None:
    """Replace scores in units of log 2 by their softmax, 2^score over the sum."""
    top = scores[0]
    for index in range(count):
        top = max(top, scores[index])
    total = _f32(0)
    for index in range(count):
        scores[index] = power_of_two(scores[index] - top)
        total += scores[index]
    for index in range(count):
        scores[index] /= total


@compiled_freely
def add_attention_weights(weights, count, attention) -> None:
    """Add a head's normalised attention weights to those of other heads."""
    if len(attention) == 0:
        return
    total = _f32(0)
    for index in range(count):
        total += weights[index]
    for index in range(count):
        attention[index] += weights[index] / total


@compiled
def attend_with_instructions(
    query, keys, values, places, count, scale, weights, found, attention
) -> None:
    """Attend with one query in all heads, of width 32, 48 or 64: see `attend`."""
    steps = _f32(scale) * BITS
    entry_size = 4 if is_float(keys) else 2
    width = keys.shape[2]
    all_keys = entry_size * width * keys.shape[1]  # stride of a head in bytes
    where, room = places.ctypes.data, weights.ctypes.data
    for head in range(len(keys)):
        requested, told = query.ctypes.data + 4 * width * head, found.ctypes.data + 4 * width * head
        own_keys, own_values = (
            keys.ctypes.data + all_keys * head,
            values.ctypes.data + all_keys * head,
        )
        if width == 64:
            look_64(keys, requested, steps, own_keys, own_values, where, count, room, told)
        elif width == 48:
            look_48(keys, requested, steps, own_keys, own_values, where, count, room, told)
        else:
            look_32(keys, requested, steps, own_keys, own_values, where, count, room, told)
        add_attention_weights(weights, count, attention)


@compiled
def attend(query, keys, values, places, count, scale, weights, found, attention) -> None:
    """Attend with one query in all heads.

    Notes
    -----
    Heads of width 32, 48 and 64 have intrinsics of their own; others are left to LLVM.
    """
    never_inline()
    key_dim, value_dim = keys.shape[2], values.shape[2]
    if key_dim == value_dim and (key_dim == 64 or key_dim == 48 or key_dim == 32):
        attend_with_instructions(
            query, keys, values, places, count, scale, weights, found, attention
        )
        return
    steps = _f32(scale) * BITS
    for head in range(len(keys)):
        requested = query[head * key_dim : (head + 1) * key_dim]
        told = found[head * value_dim : (head + 1) * value_dim]
        own_keys, own_values = keys[head], values[head]
        for index in range(count):
            weights[index] = score_key(requested, own_keys, places[index]) * steps
        softmax_in_place(weights, count)
        add_attention_weights(weights, count, attention)
        told[:] = 0
        for index in range(count):
            share, place = weights[index], places[index]
            for entry in range(value_dim):
                value = own_values[place, entry]
                told[entry] += share * (_f32(value) if is_float(values) else from_bfloat16(value))


@compiled
def write_kv(vector, start, place, halves) -> None:
    """Write the keys or the values of a token into the pool."""
    width = halves.shape[2]
    for head in range(len(halves)):
        first = start + head * width
        to_kv_type(vector[first : first + width], halves[head, place])
