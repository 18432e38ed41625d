"""Attention of one query in one head of width 32, 48 or 64, as LLVM code: scores, softmax, sum.

The softmax is computed in units of log 2; its division comes last, of the weighted sum of values.
Keys and values are float32 or bfloat16 (the upper half of a float32).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.compiler.instructions import (
    EXP2_COEFFICIENTS,
    FRACTION,
    FRACTIONS,
    HALVES,
    LONG,
    LOWEST_EXPONENT,
    REGISTER,
    WORD,
    WORDS,
    Writer,
)
from dragoman.kernels.cpu_search.weight_layout import LANES


def _make_attention(width: int) -> Callable:
    """Make the intrinsic by which one query attends to keys in one head of this width.

    Arguments: an array of the type of keys and values; the address of the query; the factor from
    dot products to scores in units of log 2; the addresses of keys and values, entry by entry of
    the pool, and of the entries to attend to, 32 bits each; their number, at least one; and the
    addresses of buffers for the weights (16 more than keys) and for the output.
    """

    @intrinsic
    def attend(context, kind, query, steps, keys, values, places, count, weights, told):
        size = 4 if kind.dtype == types.float32 else 2

        def write(_context: Any, builder: Any, _signature: Any, arguments: Any) -> None:  # noqa: ANN401
            query, steps, keys, values, places, count, weights, told = arguments[1:]
            row = _Row(Writer(builder), width // LANES, size)
            top = _write_scores(row, query, steps, keys, places, count, weights)
            total = _write_exponentials(row.writer, top, count, weights)
            found = _write_found(row, values, places, count, weights)
            inverse = row.writer.repeat(builder.fdiv(FRACTION(1), total))
            for place, each in enumerate(found):
                row.writer.write(builder.fmul(each, inverse), told, REGISTER * place)

        return types.void(kind, types.int64, types.float32, *[types.int64] * 6), write

    return attend


look_32, look_48, look_64 = map(_make_attention, (32, 48, 64))


class _Row(NamedTuple):
    """Layout of a key or value vector: registers that it fills, and bytes of an entry."""

    writer: Writer
    num_registers: int
    size: int


def _find_row(row, numbers, places, index):
    """Compute the address of the key or value of one pool entry."""
    writer = row.writer
    place = writer.builder.zext(writer.read(WORD, writer.move(places, index, 4)), LONG)
    return writer.move(numbers, place, row.size * LANES * row.num_registers)


def _read_row(row, address):
    """Load a key or value vector as float registers."""
    writer, builder = row.writer, row.writer.builder
    half = ir.Constant(WORDS, [16] * LANES)
    for place in range(row.num_registers):
        if row.size == 4:
            yield writer.read(FRACTIONS, address, REGISTER * place)
            continue
        words = builder.zext(writer.read(HALVES, address, REGISTER // 2 * place), WORDS)
        yield builder.bitcast(builder.shl(words, half), FRACTIONS)


def _write_scores(row, query, steps, keys, places, count, weights):
    """Generate the loop of scores; return the highest, broadcast to a register."""
    writer = row.writer
    steps = writer.repeat(steps)
    requested = [
        writer.builder.fmul(writer.read(FRACTIONS, query, REGISTER * place), steps)
        for place in range(row.num_registers)
    ]
    nothing = ir.Constant(FRACTIONS, [0.0] * LANES)
    lowest = ir.Constant(FRACTION, float("-inf"))

    def find_score(index, olds):
        sums, address = nothing, _find_row(row, keys, places, index)
        for own, key in zip(requested, _read_row(row, address), strict=True):
            sums = writer.call("llvm.fmuladd.v16f32", own, key, sums)
        score = writer.add_up(sums)
        writer.write(score, writer.move(weights, index, 4))
        return [writer.call("llvm.maxnum.f32", score, olds[0])]

    (top,) = writer.loop(count, [lowest], find_score)
    return writer.repeat(top)


def _write_exponentials(writer, top, count, weights):
    """Generate the loop of exponentials (powers of two); return their sum."""
    builder = writer.builder
    nothing = ir.Constant(FRACTIONS, [0.0] * LANES)
    behind = ir.Constant(FRACTIONS, [float("-inf")] * LANES)
    writer.write(behind, writer.move(weights, count, 4))
    blocks = builder.udiv(builder.add(count, LONG(LANES - 1)), LONG(LANES))

    def raise_two(index, olds):
        place = writer.move(weights, index, REGISTER)
        power = write_power(writer, builder.fsub(writer.read(FRACTIONS, place), top))
        writer.write(power, place)
        return [builder.fadd(olds[0], power)]

    (total,) = writer.loop(blocks, [nothing], raise_two)
    return writer.add_up(total)


def write_power(writer, exponents) -> ir.Value:
    """Generate 2^x for each lane of a register, as `power_of_two` computes it."""
    builder = writer.builder

    def every(number):
        return ir.Constant(FRACTIONS, [float(number)] * LANES)

    exponents = writer.call("llvm.maxnum.v16f32", exponents, every(LOWEST_EXPONENT))
    whole = writer.call("llvm.rint.v16f32", exponents)
    rest = builder.fsub(exponents, whole)
    found = every(EXP2_COEFFICIENTS[0])
    for coefficient in EXP2_COEFFICIENTS[1:]:
        found = writer.call("llvm.fmuladd.v16f32", found, rest, every(coefficient))
    bits = builder.add(builder.fptosi(whole, WORDS), ir.Constant(WORDS, [127] * LANES))
    bits = builder.shl(bits, ir.Constant(WORDS, [23] * LANES))
    return builder.fmul(found, builder.bitcast(bits, FRACTIONS))


def _write_found(row, values, places, count, weights):
    """Generate the weighted sum of the values; return its registers."""
    writer = row.writer

    def add_value(index, sums):
        share = writer.repeat(writer.read(FRACTION, writer.move(weights, index, 4)))
        numbers = _read_row(row, _find_row(row, values, places, index))
        return [
            writer.call("llvm.fmuladd.v16f32", share, value, old)
            for value, old in zip(numbers, sums, strict=True)
        ]

    nothing = [ir.Constant(FRACTIONS, [0.0] * LANES)] * row.num_registers
    return writer.loop(count, nothing, add_value)
