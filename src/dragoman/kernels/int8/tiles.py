"""Products in eight bits that round, multiply and restore in one pass, for a CPU.

A tile is 6 vectors by 64 outputs: its sums stay in 24 of the processor's 32 registers while entries
of vectors and of the matrix stream by. Vectors are rounded each by a scale of its own, so what else
is in a batch changes nothing.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.eight_bits import SMALLEST
from dragoman.kernels.int8.instructions import (
    FRACTION,
    FRACTIONS,
    REGISTER,
    WORD,
    WORDS,
    Intrinsic,
    Writer,
    as_float,
    as_int,
    compiled,
)
from dragoman.kernels.int8.layout import COLUMNS, ENTRIES, LANES, LARGEST, ZERO

ROWS = 6
"""Vectors of a tile."""

_REGISTERS = COLUMNS // LANES
_f32, _i32 = np.float32, np.int32
_ZERO, _STEPS = _i32(ZERO), _f32(LARGEST)
_SMALLEST = _f32(SMALLEST)
SIGNLESS = _i32(0x7FFFFFFF)
"""All bits of a fraction but its sign."""


@intrinsic
def multiply_tile(context, vectors, sizes, panel, groups, outputs, products, stride) -> Intrinsic:
    """Multiply 6 vectors by a panel of 64 outputs, by the instruction that VNNI is named after.

    Parameters
    ----------
    context : object
        Numba's.
    vectors : int
        Address of bytes without a sign, vector behind vector.
    sizes : int
        Address of what each vector was divided by.
    panel : int
        Address of a panel, as `Matrix` has it.
    groups : int
        A quarter of a vector's entries.
    outputs : int
        Address of the panel's shifts, scales and biases.
    products : int
        Address where the products of the first vector are written.
    stride : int
        How many bytes further those of the next are written.

    Returns
    -------
    Intrinsic
        Nothing.
    """

    def write(_context, builder, _signature, arguments):
        vectors, sizes, panel, groups, outputs, products, stride = arguments
        writer = Writer(builder)
        sums = _write_sums(writer, vectors, panel, groups)
        _write_products(writer, sums, sizes, outputs, products, stride)

    return types.void(*[types.int64] * 7), write


def _write_sums(writer, vectors, panel, groups):
    """Write the loop over the entries of vectors; return the sums, vector by vector."""
    width = writer.move(ir.IntType(64)(0), groups, ENTRIES)
    starts = [writer.move(vectors, row, width) for row in range(ROWS)]

    def add_products(group, sums):
        start = writer.move(panel, group, REGISTER * _REGISTERS)
        weights = [writer.read(WORDS, start, REGISTER * place) for place in range(_REGISTERS)]
        news = []
        for row in range(ROWS):
            entries = writer.repeat(writer.read(WORD, writer.move(starts[row], group, ENTRIES)))
            olds = sums[row * _REGISTERS : (row + 1) * _REGISTERS]
            for old, weight in zip(olds, weights, strict=True):
                news.append(writer.call("llvm.x86.avx512.vpdpbusd.512", old, entries, weight))
        return news

    nothing = [ir.Constant(WORDS, [0] * LANES)] * (ROWS * _REGISTERS)
    return writer.loop(groups, nothing, add_products)


def _write_products(writer, sums, sizes, outputs, products, stride):
    """Write how sums become products, and where these go."""
    builder = writer.builder
    divisors = [writer.repeat(writer.read(FRACTION, sizes, 4 * row)) for row in range(ROWS)]
    for place in range(_REGISTERS):
        shift, scale, bias = (
            writer.read(kind, outputs, 4 * COLUMNS * part + REGISTER * place)
            for part, kind in enumerate((WORDS, FRACTIONS, FRACTIONS))
        )
        for row, divisor in enumerate(divisors):
            found = builder.sub(sums[row * _REGISTERS + place], shift)
            found = builder.fmul(builder.sitofp(found, FRACTIONS), scale)
            found = writer.call("llvm.fma.v16f32", found, divisor, bias)
            writer.write(found, writer.move(products, row, stride), REGISTER * place)


@compiled
def fill_tiles(count) -> int:
    """Say how many vectors there are once all tiles are full.

    Parameters
    ----------
    count : int
        How many there are.

    Returns
    -------
    int
        A multiple of 6.
    """
    return -(-count // ROWS) * ROWS


@compiled
def round_rows(states, count, width, groups) -> tuple[np.ndarray, np.ndarray]:
    """Divide vectors by their largest entries and round them.

    Parameters
    ----------
    states : ndarray
        The vectors, one a row.
    count : int
        How many of them.
    width : int
        Entries of each.
    groups : int
        A quarter of the entries that each gets.

    Returns
    -------
    tuple[ndarray, ndarray]
        Bytes, those of 0 being `ZERO`, and the largest entry of each vector without its sign.
        Vectors are added until tiles are full.
    """
    full = fill_tiles(count)
    rounded = np.empty((full, groups * ENTRIES), np.uint8)
    sizes = np.zeros(full, np.float32)
    for row in range(count):
        largest = _i32(0)
        for place in range(width):
            largest = max(largest, as_int(states[row, place]) & SIGNLESS)
        sizes[row] = max(as_float(largest), _SMALLEST)
        inverse = _f32(1) / sizes[row]
        for place in range(width):
            entry = states[row, place] * inverse
            rounded[row, place] = np.uint8(_i32(np.rint(entry * _STEPS)) + _ZERO)
        rounded[row, width:] = 0
    rounded[count:] = 0
    return rounded, sizes


@compiled
def multiply_rows(states, count, panels, outputs, width, products) -> None:
    """Multiply vectors by a matrix.

    Parameters
    ----------
    states : ndarray
        The vectors, one a row.
    count : int
        How many of them.
    panels : ndarray
        The matrix, as `dragoman.kernels.int8.layout.Matrix` has it.
    outputs : ndarray
        Likewise.
    width : int
        Entries of each vector.
    products : ndarray
        Where the products are written, one vector's a row: as many rows as fill tiles, and as many
        columns as all panels have.
    """
    groups = panels.shape[1]
    rounded, sizes = round_rows(states, count, width, groups)
    for panel in range(len(panels)):
        for start in range(0, count, ROWS):
            multiply_tile(
                rounded[start].ctypes.data,
                sizes[start:].ctypes.data,
                panels[panel].ctypes.data,
                groups,
                outputs[panel].ctypes.data,
                products[start, panel * COLUMNS :].ctypes.data,
                4 * products.shape[1],
            )
