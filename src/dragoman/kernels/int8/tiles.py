"""Products in eight bits that round, multiply and restore in one pass, for a CPU.

Written for Numba, which compiles Python for the processor at hand; whoever imports this module has
asked `dragoman.kernels.int8.layout.can_compile` before. A tile is 6 vectors by 64 outputs: its sums
stay in 24 of the processor's 32 registers while entries of vectors and of the matrix stream by.
Vectors are rounded each by a scale of its own, so what else is in a batch changes nothing.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dragoman.eight_bits import SMALLEST
from dragoman.kernels.int8.layout import COLUMNS, ENTRIES, LANES, LARGEST, ZERO

ROWS = 6
"""Vectors of a tile."""

_BYTES = LANES * ENTRIES  # of a register
_REGISTERS = COLUMNS // LANES
_WORD, _LONG, _FRACTION = ir.IntType(32), ir.IntType(64), ir.FloatType()
_SUMS, _FRACTIONS = (ir.VectorType(kind, LANES) for kind in (_WORD, _FRACTION))
_ENTRIES = ir.VectorType(ir.IntType(8), _BYTES)

Intrinsic = tuple[Any, Callable]
"""The types of what a function of one's own instructions takes and gives, and what writes them."""

_f32, _i32 = np.float32, np.int32
_ZERO, _STEPS = _i32(ZERO), _f32(LARGEST)
_SMALLEST = _f32(SMALLEST)
_SIGNLESS = _i32(0x7FFFFFFF)

# A product and a sum may become one operation; sums may be in any order only where that is said.
compiled = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
compiled_freely = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "reassoc", "nsz"}
)


@intrinsic
def as_int(context, fraction) -> Intrinsic:
    """Read the bits of a fraction as those of a whole number.

    Parameters
    ----------
    context : object
        Numba's.
    fraction : float
        The fraction.

    Returns
    -------
    Intrinsic
        The whole number.
    """

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], _WORD)

    return types.int32(types.float32), write


@intrinsic
def as_float(context, number) -> Intrinsic:
    """Read the bits of a whole number as those of a fraction.

    Parameters
    ----------
    context : object
        Numba's.
    number : int
        The whole number.

    Returns
    -------
    Intrinsic
        The fraction.
    """

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], _FRACTION)

    return types.float32(types.int32), write


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
        sums = _write_sums(builder, vectors, panel, groups)
        _write_products(builder, sums, sizes, outputs, products, stride)

    return types.void(*[types.int64] * 7), write


def _write_sums(builder, vectors, panel, groups):
    """Write the loop over the entries of vectors; return the sums of each vector."""
    add_products = _function(builder, [_SUMS, _ENTRIES, _ENTRIES], "llvm.x86.avx512.vpdpbusd.512")
    width = builder.mul(groups, _LONG(ENTRIES))
    starts = [builder.add(vectors, builder.mul(width, _LONG(row))) for row in range(ROWS)]
    before = builder.block
    loop, behind = (builder.append_basic_block(name) for name in ("products", "summed"))
    builder.branch(loop)
    builder.position_at_end(loop)
    group = builder.phi(_LONG)
    group.add_incoming(_LONG(0), before)
    olds = [[builder.phi(_SUMS) for _ in range(_REGISTERS)] for _ in range(ROWS)]
    start = builder.add(panel, builder.mul(group, _LONG(_BYTES * _REGISTERS)))
    weights = [_read(builder, _ENTRIES, start, _BYTES * place) for place in range(_REGISTERS)]
    tile = []
    for row in range(ROWS):
        place = builder.add(starts[row], builder.mul(group, _LONG(ENTRIES)))
        vector = builder.bitcast(_repeat(builder, _SUMS, _read(builder, _WORD, place, 0)), _ENTRIES)
        tile.append(
            [
                builder.call(add_products, [old, vector, weight])
                for old, weight in zip(olds[row], weights, strict=True)
            ]
        )
        for old, new in zip(olds[row], tile[row], strict=True):
            old.add_incoming(ir.Constant(_SUMS, [0] * LANES), before)
            old.add_incoming(new, loop)
    following = builder.add(group, _LONG(1))
    group.add_incoming(following, loop)
    builder.cbranch(builder.icmp_unsigned("<", following, groups), loop, behind)
    builder.position_at_end(behind)
    return tile


def _write_products(builder, tile, sizes, outputs, products, stride):
    """Write how sums become products, and where these go."""
    multiply_and_add = _function(builder, [_FRACTIONS] * 3, "llvm.fma.v16f32")
    divisors = [
        _repeat(builder, _FRACTIONS, _read(builder, _FRACTION, sizes, 4 * row))
        for row in range(ROWS)
    ]
    for place in range(_REGISTERS):
        shift, scale, bias = (
            _read(builder, kind, outputs, 4 * COLUMNS * part + _BYTES * place)
            for part, kind in enumerate((_SUMS, _FRACTIONS, _FRACTIONS))
        )
        for row, divisor in enumerate(divisors):
            found = builder.sitofp(builder.sub(tile[row][place], shift), _FRACTIONS)
            found = builder.call(multiply_and_add, [builder.fmul(found, scale), divisor, bias])
            address = builder.add(products, builder.mul(stride, _LONG(row)))
            address = builder.add(address, _LONG(_BYTES * place))
            builder.store(found, builder.inttoptr(address, _FRACTIONS.as_pointer()), align=1)


def _function(builder, kinds, name):
    """Name an instruction whose result is of the first of its arguments' kinds."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(kinds[0], kinds), name)


def _read(builder, kind, address, offset):
    """Read what lies so many bytes behind an address."""
    place = builder.add(address, _LONG(offset))
    return builder.load(builder.inttoptr(place, kind.as_pointer()), align=1)


def _repeat(builder, kind, number):
    """Put a number into all lanes of a register."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, number, _WORD(0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_SUMS, [0] * LANES))


@intrinsic
def take_numbers(context, address, count) -> Intrinsic:
    """Add to a whole number that threads share.

    Parameters
    ----------
    context : object
        Numba's.
    address : int
        Where it is.
    count : int
        What is added.

    Returns
    -------
    Intrinsic
        What it was before.
    """

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], _LONG.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), write


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
            largest = max(largest, as_int(states[row, place]) & _SIGNLESS)
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
