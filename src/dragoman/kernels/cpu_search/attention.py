"""One head of 64 entries looking at other words, in instructions of our own.

Keys and values are in float32, or in 16 bits, the upper half of those of a float32.
"""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.instructions import (
    FRACTION,
    FRACTIONS,
    HALVES,
    LONG,
    REGISTER,
    WORD,
    WORDS,
    Intrinsic,
    Writer,
)
from dragoman.kernels.cpu_search.layout import LANES
from dragoman.kernels.cpu_search.polynomial import COEFFICIENTS, LOWEST

WIDTH = 64
"""Entries of a head's keys and values."""

_REGISTERS = WIDTH // LANES


@intrinsic
def look_fast(context, kind, query, steps, keys, values, places, count, shares, told) -> Intrinsic:
    """Let one head look at some places.

    Parameters
    ----------
    context : object
        Numba's.
    kind : ndarray
        An array of the type of keys and values.
    query : int
        Address of its query.
    steps : float
        What makes of products with keys scores in units of log 2.
    keys : int
        Address of its keys, place behind place.
    values : int
        Likewise.
    places : int
        Address of the places, 32 bits each.
    count : int
        How many they are, at least one.
    shares : int
        Address of room for as many fractions and 16 more.
    told : int
        Address where what it found is written.

    Returns
    -------
    Intrinsic
        Nothing.
    """
    size = 4 if kind.dtype == types.float32 else 2

    def write(_context, builder, _signature, arguments):
        query, steps, keys, values, places, count, shares, told = arguments[1:]
        writer = Writer(builder)
        top = _write_scores(writer, query, steps, keys, places, count, shares, size)
        total = _write_shares(writer, top, count, shares)
        found = _write_found(writer, values, places, count, shares, size)
        inverse = writer.repeat(builder.fdiv(FRACTION(1), total))
        for place, each in enumerate(found):
            writer.write(builder.fmul(each, inverse), told, REGISTER * place)

    return types.void(kind, types.int64, types.float32, *[types.int64] * 6), write


def _find_row(writer, numbers, places, index, size):
    """Find the keys or values of one place, of so many bytes an entry."""
    place = writer.builder.zext(writer.read(WORD, writer.move(places, index, 4)), LONG)
    return writer.move(numbers, place, size * WIDTH)


def _read_row(writer, row, size):
    """Read the keys or values at an address, as registers of fractions."""
    builder, half = writer.builder, ir.Constant(WORDS, [16] * LANES)
    for place in range(_REGISTERS):
        if size == 4:
            yield writer.read(FRACTIONS, row, REGISTER * place)
            continue
        words = builder.zext(writer.read(HALVES, row, REGISTER // 2 * place), WORDS)
        yield builder.bitcast(builder.shl(words, half), FRACTIONS)


def _write_scores(writer, query, steps, keys, places, count, shares, size):
    """Write how scores are found; return the highest, in all places of a register."""
    steps = writer.repeat(steps)
    asked = [
        writer.builder.fmul(writer.read(FRACTIONS, query, REGISTER * place), steps)
        for place in range(_REGISTERS)
    ]
    nothing = ir.Constant(FRACTIONS, [0.0] * LANES)
    lowest = ir.Constant(FRACTION, float("-inf"))

    def find_score(index, olds):
        sums, row = nothing, _find_row(writer, keys, places, index, size)
        for own, key in zip(asked, _read_row(writer, row, size), strict=True):
            sums = writer.call("llvm.fmuladd.v16f32", own, key, sums)
        score = writer.add_up(sums)
        writer.write(score, writer.move(shares, index, 4))
        return [writer.call("llvm.maxnum.f32", score, olds[0])]

    (top,) = writer.loop(count, [lowest], find_score)
    return writer.repeat(top)


def _write_shares(writer, top, count, shares):
    """Write how scores become powers of two; return their sum."""
    builder = writer.builder
    nothing = ir.Constant(FRACTIONS, [0.0] * LANES)
    behind = ir.Constant(FRACTIONS, [float("-inf")] * LANES)
    writer.write(behind, writer.move(shares, count, 4))
    blocks = builder.udiv(builder.add(count, LONG(LANES - 1)), LONG(LANES))

    def raise_two(index, olds):
        place = writer.move(shares, index, REGISTER)
        power = write_power(writer, builder.fsub(writer.read(FRACTIONS, place), top))
        writer.write(power, place)
        return [builder.fadd(olds[0], power)]

    (total,) = writer.loop(blocks, [nothing], raise_two)
    return writer.add_up(total)


def write_power(writer, exponents) -> ir.Value:
    """Write 2 to the power of each number of a register, as `power_of_two` computes it.

    Parameters
    ----------
    writer : Writer
        What writes.
    exponents : ir.Value
        The register.

    Returns
    -------
    ir.Value
        The powers.
    """
    builder = writer.builder

    def every(number):
        return ir.Constant(FRACTIONS, [float(number)] * LANES)

    exponents = writer.call("llvm.maxnum.v16f32", exponents, every(LOWEST))
    whole = writer.call("llvm.rint.v16f32", exponents)
    rest = builder.fsub(exponents, whole)
    found = every(COEFFICIENTS[0])
    for coefficient in COEFFICIENTS[1:]:
        found = writer.call("llvm.fmuladd.v16f32", found, rest, every(coefficient))
    bits = builder.add(builder.fptosi(whole, WORDS), ir.Constant(WORDS, [127] * LANES))
    bits = builder.shl(bits, ir.Constant(WORDS, [23] * LANES))
    return builder.fmul(found, builder.bitcast(bits, FRACTIONS))


def _write_found(writer, values, places, count, shares, size):
    """Write the sum of values, each as often as its share says; return its registers."""

    def add_value(index, sums):
        share = writer.repeat(writer.read(FRACTION, writer.move(shares, index, 4)))
        row = _read_row(writer, _find_row(writer, values, places, index, size), size)
        return [
            writer.call("llvm.fmuladd.v16f32", share, value, old)
            for value, old in zip(row, sums, strict=True)
        ]

    nothing = [ir.Constant(FRACTIONS, [0.0] * LANES)] * _REGISTERS
    return writer.loop(count, nothing, add_value)
