"""Softmax of rows, its gradient, and transposition, in registers of 16 numbers."""

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.compiler.instructions import (
    FRACTION,
    FRACTIONS,
    LONG,
    REGISTER,
    WORD,
    WORDS,
    Intrinsic,
    Writer,
)
from dragoman.kernels.cpu_search.head_attention import write_power
from dragoman.kernels.cpu_search.weight_layout import LANES

_NOTHING = ir.Constant(FRACTIONS, [0.0] * LANES)
_LOWEST = ir.Constant(FRACTIONS, [-1e30] * LANES)


@intrinsic
def softmax(context, row, count, num_registers) -> Intrinsic:
    """Replace the scores of a row by their softmax.

    Parameters
    ----------
    context : object
        Numba's.
    row : int
        Address of the scores, in units of log 2; overwritten.
    count : int
        How many of them count, at least one; the weights of all others become 0.
    num_registers : int
        How many registers the row fills.
    """

    def write(_context, builder, _signature, arguments):
        row, count, num_registers = arguments
        writer = Writer(builder)
        limit = writer.repeat(builder.trunc(count, WORD))
        lanes = ir.Constant(WORDS, list(range(LANES)))

        def find_top(index, tops):
            first = writer.repeat(builder.trunc(builder.mul(index, LONG(LANES)), WORD))
            counts = builder.icmp_signed("<", builder.add(first, lanes), limit)
            place = writer.move(row, index, REGISTER)
            scores = builder.select(counts, writer.read(FRACTIONS, place), _LOWEST)
            writer.write(scores, place)
            return [writer.call("llvm.maxnum.v16f32", scores, tops[0])]

        (tops,) = writer.loop(num_registers, [_LOWEST], find_top)
        top = writer.repeat(writer.find_largest(tops))

        def raise_two(index, totals):
            place = writer.move(row, index, REGISTER)
            scores = writer.read(FRACTIONS, place)
            power = write_power(writer, builder.fsub(scores, top))
            power = builder.select(builder.fcmp_ordered(">", scores, _LOWEST), power, _NOTHING)
            writer.write(power, place)
            return [builder.fadd(totals[0], power)]

        (totals,) = writer.loop(num_registers, [_NOTHING], raise_two)
        inverse = writer.repeat(builder.fdiv(FRACTION(1), writer.add_up(totals)))

        def scale(index, _nothing):
            place = writer.move(row, index, REGISTER)
            writer.write(builder.fmul(writer.read(FRACTIONS, place), inverse), place)
            return []

        writer.loop(num_registers, [], scale)

    return types.void(*[types.int64] * 3), write


@intrinsic
def softmax_backward(context, weights, grad, num_registers) -> Intrinsic:
    """Replace the gradient of a row of weights by that of its scores."""

    def write(_context, builder, _signature, arguments):
        weights, grad, num_registers = arguments
        writer = Writer(builder)

        def multiply(index, totals):
            one, other = (
                writer.read(FRACTIONS, writer.move(each, index, REGISTER))
                for each in (weights, grad)
            )
            return [writer.call("llvm.fmuladd.v16f32", one, other, totals[0])]

        (totals,) = writer.loop(num_registers, [_NOTHING], multiply)
        total = writer.repeat(writer.add_up(totals))

        def store(index, _nothing):
            own = writer.read(FRACTIONS, writer.move(weights, index, REGISTER))
            place = writer.move(grad, index, REGISTER)
            difference = builder.fsub(writer.read(FRACTIONS, place), total)
            writer.write(builder.fmul(own, difference), place)
            return []

        writer.loop(num_registers, [], store)

    return types.void(*[types.int64] * 3), write


@intrinsic
def transpose_square(context, rows, row_size, columns, column_size) -> Intrinsic:
    """Transpose a square of 16 by 16 entries."""

    def write(_context, builder, _signature, arguments):
        rows, row_size, columns, column_size = arguments
        writer = Writer(builder)
        registers = [
            writer.read(FRACTIONS, writer.move(rows, index, row_size)) for index in range(LANES)
        ]
        step = LANES // 2
        while step:  # swap squares of this many rows across the diagonal
            for upper in (index for index in range(LANES) if not index & step):
                pair = registers[upper], registers[upper + step]
                for index, shift in ((upper, 0), (upper + step, step)):
                    lanes = [
                        lane + shift if not lane & step else LANES + lane - step + shift
                        for lane in range(LANES)
                    ]
                    registers[index] = builder.shuffle_vector(*pair, ir.Constant(WORDS, lanes))
            step //= 2
        for index, register in enumerate(registers):
            writer.write(register, writer.move(columns, index, column_size))

    return types.void(*[types.int64] * 4), write
