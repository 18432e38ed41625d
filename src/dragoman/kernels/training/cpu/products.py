"""Small float32 matrix products inside compiled functions, in registers of 16 numbers."""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.compiler.instructions import (
    FRACTION,
    FRACTIONS,
    REGISTER,
    Writer,
    compiled,
)

_ROWS = 4


def _make_tile(num_rows: int, num_registers: int) -> Callable:
    """Make the intrinsic that computes a few rows of C = A·B, 16 columns a register.

    A is read entry by entry, with any strides, so that it may be transposed; B and C lie row by
    row.
    """

    @intrinsic
    def tile(context, a, a_row, a_column, b, b_row, c, c_row, depth):
        def write(target: Any, builder: Any, _signature: Any, arguments: Any) -> ir.Value:  # noqa: ANN401
            writer = Writer(builder)
            a, a_row, a_column, b, b_row, c, c_row, depth = arguments
            rows = [writer.move(a, row, a_row) for row in range(num_rows)]
            zero = ir.Constant(FRACTIONS, [FRACTION(0)] * 16)

            def multiply(step: ir.Value, sums: list[ir.Value]) -> list[ir.Value]:
                at = writer.move(b, step, b_row)
                values = [
                    writer.read(FRACTIONS, at, REGISTER * each) for each in range(num_registers)
                ]
                new = []
                for index, row in enumerate(rows):
                    factor = writer.repeat(writer.read(FRACTION, writer.move(row, step, a_column)))
                    for each in range(num_registers):
                        old = sums[index * num_registers + each]
                        name = "llvm.fmuladd.v16f32"
                        new.append(writer.call(name, factor, values[each], old))
                return new

            found = writer.loop(depth, [zero] * (num_rows * num_registers), multiply)
            for index in range(num_rows):
                at = writer.move(c, index, c_row)
                for each in range(num_registers):
                    writer.write(found[index * num_registers + each], at, REGISTER * each)
            return target.get_dummy_value()

        return types.void(*[types.int64] * 8), write

    return tile


_tile_4_4, _tile_4_2, _tile_4_1 = (_make_tile(_ROWS, each) for each in (4, 2, 1))
_tile_1_4, _tile_1_2, _tile_1_1 = (_make_tile(1, each) for each in (4, 2, 1))


@compiled
def multiply(a, a_row, a_column, b, c, num_rows, depth, num_columns):
    """Compute C = A·B.

    `a` is an address, its strides are in entries; `b` and `c` are arrays whose rows have room for
    `num_columns`, a multiple of 16. `depth` is at least 1.
    """
    b_row, c_row = 4 * b.shape[1], 4 * c.shape[1]
    a_row, a_column = 4 * a_row, 4 * a_column
    column = 0
    while column < num_columns:
        left = num_columns - column
        at_b, at_c = b.ctypes.data + 4 * column, c.ctypes.data + 4 * column
        row = 0
        while row < num_rows:
            at_a, at_row = a + row * a_row, at_c + row * c_row
            if num_rows >= 4:
                if left >= 64:
                    _tile_4_4(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                elif left >= 32:
                    _tile_4_2(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                else:
                    _tile_4_1(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                # The last tile overlaps the one before it.
                row = num_rows if row + 4 == num_rows else min(row + 4, num_rows - 4)
            else:
                if left >= 64:
                    _tile_1_4(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                elif left >= 32:
                    _tile_1_2(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                else:
                    _tile_1_1(at_a, a_row, a_column, at_b, b_row, at_row, c_row, depth)
                row += 1
        column += 64 if left >= 64 else (32 if left >= 32 else 16)
