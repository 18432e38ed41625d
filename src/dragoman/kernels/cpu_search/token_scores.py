"""Maximum and sum of exponentials of the scores of 64 tokens: what their log-softmax needs."""

from functools import partial, reduce

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.compiler.instructions import (
    FRACTION,
    FRACTIONS,
    LONG,
    REGISTER,
    Intrinsic,
    Writer,
    compiled,
)
from dragoman.kernels.cpu_search.head_attention import write_power
from dragoman.kernels.cpu_search.vectors import BITS, power_of_two
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, LANES

LOWEST = np.float32(-1e30)
"""Less than any score but −∞."""
_f32 = np.float32


@intrinsic
def find_highest(context, address) -> Intrinsic:
    """Return the highest score of a panel."""

    def write(_context, builder, _signature, arguments):
        writer = Writer(builder)
        return writer.find_largest(
            reduce(partial(writer.call, "llvm.maxnum.v16f32"), _read_panel(writer, *arguments))
        )

    return types.float32(types.int64), write


@intrinsic
def add_exponentials(context, address, ceiling) -> Intrinsic:
    """Sum the exponentials of a panel's scores."""

    def write(_context, builder, _signature, arguments):
        writer, (address, ceiling) = Writer(builder), arguments
        ceiling, steps = writer.repeat(ceiling), writer.repeat(FRACTION(float(BITS)))
        powers = (
            write_power(writer, builder.fmul(builder.fsub(each, ceiling), steps))
            for each in _read_panel(writer, address)
        )
        return writer.add_up(reduce(builder.fadd, powers))

    return types.float32(types.int64, types.float32), write


@intrinsic
def find_above(context, address, bound) -> Intrinsic:
    """Return a bit mask of the scores of a panel above a bound."""

    def write(_context, builder, _signature, arguments):
        writer, (address, bound) = Writer(builder), arguments
        bound, found = writer.repeat(bound), LONG(0)
        for place, scores in enumerate(_read_panel(writer, address)):
            bits = builder.bitcast(builder.fcmp_ordered(">", scores, bound), ir.IntType(LANES))
            bits = builder.shl(builder.zext(bits, LONG), LONG(LANES * place))
            found = builder.or_(found, bits)
        return found

    return types.uint64(types.int64, types.float32), write


@intrinsic
def find_lowest(context, bits) -> Intrinsic:
    """Return the index of the lowest set bit."""

    def write(_context, builder, _signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), write


def _read_panel(writer, address):
    """Load the scores of a panel into registers."""
    return [writer.read(FRACTIONS, address, start) for start in range(0, 4 * COLUMNS, REGISTER)]


@compiled
def accumulate_exponentials(address, is_normalised, highest, total) -> tuple[float, float, float]:
    """Update the running maximum and sum of exponentials by the scores of a panel."""
    top = find_highest(address)
    if is_normalised:
        if top > highest:
            total *= power_of_two((highest - top) * BITS)
            highest = top
        total += add_exponentials(address, highest)
    return top, highest, total


@compiled
def find_normaliser(highest, totals) -> float:
    """Compute the log-sum-exp from the maxima and sums of all parts."""
    top, total = highest.max(), _f32(0)
    for part in range(len(highest)):
        total += totals[part] * power_of_two((highest[part] - top) * BITS)
    return top + _f32(np.log(total))
