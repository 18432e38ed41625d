"""Matrix products in int8 (quantise, multiply, restore in one pass) and in float32, for a CPU.

A tile is a few vectors by a block of outputs: its sums stay in registers while entries of vectors
and of the matrix are streamed. `dragoman.kernels.processor.INSTRUCTION_SETS` has the tile sizes;
here is how each set multiplies. Integer products are the same with every set. Each vector has a
scale of its own, so a result does not depend on the rest of the batch.
"""

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.eight_bits import SMALLEST
from dragoman.kernels.cpu_search.compiler.instructions import (
    FRACTION,
    LONG,
    WORD,
    Intrinsic,
    Writer,
    as_float,
    as_int,
    borrow,
    compiled,
    is_float,
    keep_alive,
)
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES, LARGEST
from dragoman.kernels.processor import INSTRUCTION_SETS, choose_instructions

INSTRUCTIONS = choose_instructions()
ROWS = INSTRUCTION_SETS[INSTRUCTIONS].rows
"""Vectors of the highest tile."""

BYTE, HALF = ir.IntType(8), ir.IntType(16)
_f32, _i32 = np.float32, np.int32
_ZERO, _STEPS = _i32(INSTRUCTION_SETS[INSTRUCTIONS].zero), _f32(LARGEST)
_SMALLEST = _f32(SMALLEST)
SIGNLESS = _i32(0x7FFFFFFF)
"""All bits of a fraction but its sign."""


def _add_vnni(writer, total, entries, weights):
    """Accumulate products of unsigned and signed bytes: vpdpbusd."""
    name = f"llvm.x86.avx512.vpdpbusd.{32 * total.type.count}"
    return writer.call(name, total, entries, weights)


def _add_avx2(writer, total, entries, weights):
    """Accumulate products of bytes, with all signs moved to the entries of the vector.

    Two products of at most 127 · 127 fit the 16 bits into which vpmaddubsw adds them.
    """
    builder, lanes = writer.builder, total.type.count
    bytes_, halves = ir.VectorType(BYTE, 4 * lanes), ir.VectorType(HALF, 2 * lanes)
    entries, weights = (builder.bitcast(each, bytes_) for each in (entries, weights))
    sizes = writer.call_as(bytes_, "llvm.abs.v32i8", weights, ir.Constant(ir.IntType(1), 0))
    signed = writer.call("llvm.x86.avx2.psign.b", entries, weights)
    pairs = writer.call_as(halves, "llvm.x86.avx2.pmadd.ub.sw", sizes, signed)
    ones = ir.Constant(halves, [1] * (2 * lanes))
    return builder.add(total, writer.call_as(total.type, "llvm.x86.avx2.pmadd.wd", pairs, ones))


def _add_dotprod(writer, total, entries, weights):
    """Accumulate products of signed bytes: sdot."""
    bytes_ = ir.VectorType(BYTE, 4 * total.type.count)
    entries, weights = (writer.builder.bitcast(each, bytes_) for each in (entries, weights))
    return writer.call("llvm.aarch64.neon.sdot.v4i32.v16i8", total, weights, entries)


def _add_portable(writer, total, entries, weights):
    """Accumulate products of signed bytes with instructions that every processor has."""
    builder, lanes = writer.builder, total.type.count
    bytes_, words = (ir.VectorType(each, 4 * lanes) for each in (BYTE, WORD))
    found = builder.mul(
        *(builder.sext(builder.bitcast(each, bytes_), words) for each in (entries, weights))
    )
    while found.type.count > lanes:  # add neighbours, twice
        places = range(0, found.type.count, 2)
        chosen = (
            ir.Constant(ir.VectorType(WORD, len(places)), [place + more for place in places])
            for more in (0, 1)
        )
        found = builder.add(*(builder.shuffle_vector(found, found, each) for each in chosen))
    return builder.add(total, found)


def _add_floats(writer, total, entries, weights):
    """Accumulate products of float32, one entry at a time."""
    kind = total.type
    entries, weights = (writer.builder.bitcast(each, kind) for each in (entries, weights))
    return writer.call(f"llvm.fmuladd.v{kind.count}f32", entries, weights, total)


_ADDERS = {
    "avx512vnni": _add_vnni,
    "avxvnni": _add_vnni,
    "avx2": _add_avx2,
    "i8mm": _add_dotprod,
    "dotprod": _add_dotprod,
    "portable": _add_portable,
}
"""By instruction set: adds to whole numbers the products of four entries each of a vector and of
the matrix, which are given as whole numbers of 32 bits. For i8mm it is that of a single vector:
several are multiplied two by two, by `_write_paired_sums`."""


@intrinsic
def multiply_tile(
    context, kind, vectors, count, sizes, panel, groups, outputs, products, stride
) -> Intrinsic:
    """Multiply the vectors of a tile by a panel of 64 outputs.

    Parameters
    ----------
    context : object
        Numba's.
    kind : ndarray
        An array of the type of the panels.
    vectors : int
        Address of rounded vectors, vector behind vector.
    count : int
        How many vectors are left, at least one; the lowest tile that has room for them, or the
        highest, is filled up with what lies behind them.
    sizes : int
        Address of what each vector was divided by; in float32 it is not read.
    panel : int
        Address of a panel, as `Matrix` has it.
    groups : int
        A quarter of a vector's entries; in float32 all of them.
    outputs : int
        Address of the panel's shifts, scales and biases.
    products : int
        Address where the products of the first vector are written.
    stride : int
        How many bytes further those of the next are written.
    """
    is_rounded = kind.dtype != types.float32

    def write(_context, builder, _signature, arguments):
        write_tile(builder, arguments[1:], INSTRUCTIONS, is_rounded=is_rounded)

    return types.void(kind, *[types.int64] * 8), write


def write_tile(builder, arguments, instructions, *, is_rounded) -> None:
    """Generate the code of `multiply_tile`."""
    vectors, count, *others = arguments
    kind, behind = INSTRUCTION_SETS[instructions], builder.append_basic_block()
    for num_rows, num_registers in kind.tiles:
        if num_rows < kind.rows:
            fits, higher = (builder.append_basic_block() for _ in range(2))
            builder.cbranch(builder.icmp_signed("<=", count, LONG(num_rows)), fits, higher)
            builder.position_at_end(fits)
        _write_one(builder, (vectors, *others), instructions, num_rows, num_registers, is_rounded)
        builder.branch(behind)
        builder.position_at_end(higher if num_rows < kind.rows else behind)


def _write_one(builder, arguments, instructions, num_rows, num_registers, is_rounded):
    """Generate the code of one tile size."""
    vectors, sizes, panel, groups, outputs, products, stride = arguments
    lanes, writer = INSTRUCTION_SETS[instructions].lanes, Writer(builder)
    register = 4 * lanes
    block_size = register * num_registers
    words, fractions = (ir.VectorType(each, lanes) for each in (WORD, FRACTION))
    add = _ADDERS[instructions] if is_rounded else _add_floats
    fused = f"llvm.fmuladd.v{lanes}f32"

    def multiply_block(block, _nothing):
        start, own_outputs, own_products = (
            writer.move(address, block, block_size) for address in (panel, outputs, products)
        )
        size, totals = (num_rows, num_registers), words if is_rounded else fractions
        if is_rounded and instructions == "i8mm" and num_rows > 1:
            sums = _write_paired_sums(writer, vectors, start, groups, size)
        else:
            sums = _write_sums(writer, vectors, start, groups, size, add, totals)
        for place in range(num_registers):
            shift, scale, bias = (
                writer.read(type_, own_outputs, 4 * COLUMNS * part + register * place)
                for part, type_ in enumerate((words, fractions, fractions))
            )
            for row in range(num_rows):
                found = sums[row * num_registers + place]
                if is_rounded:
                    divisor = writer.repeat(writer.read(FRACTION, sizes, 4 * row), lanes)
                    found = builder.sitofp(builder.sub(found, shift), fractions)
                    found = writer.call(fused, builder.fmul(found, scale), divisor, bias)
                else:
                    found = builder.fadd(found, bias)
                writer.write(found, writer.move(own_products, row, stride), register * place)
        return []

    if block_size == 4 * COLUMNS:
        multiply_block(LONG(0), [])
    else:
        writer.loop(LONG(4 * COLUMNS // block_size), [], multiply_block)


def _write_sums(writer, vectors, start, groups, size, add, totals):
    """Generate the loop over entries of the vectors; return the sums, vector by vector."""
    (num_rows, num_registers), lanes = size, totals.count
    words = ir.VectorType(WORD, lanes)
    width = writer.move(LONG(0), groups, ENTRIES)
    starts = [writer.move(vectors, row, width) for row in range(num_rows)]

    def add_products(group, sums):
        place = writer.move(start, group, ENTRIES * COLUMNS)
        weights = [writer.read(words, place, 4 * lanes * index) for index in range(num_registers)]
        news = []
        for row in range(num_rows):
            entries = writer.read(WORD, writer.move(starts[row], group, ENTRIES))
            entries = writer.repeat(entries, lanes)
            olds = sums[row * num_registers : (row + 1) * num_registers]
            news += [
                add(writer, old, entries, weight) for old, weight in zip(olds, weights, strict=True)
            ]
        return news

    nothing = [ir.Constant(totals, [0] * lanes)]
    return writer.loop(groups, nothing * (num_rows * num_registers), add_products)


def _write_paired_sums(writer, vectors, start, groups, size):
    """Generate the loop over entries by smmla, as `_write_sums` does; return the same sums.

    The instruction multiplies eight entries of two vectors by those of two outputs: it fills a
    register with the four sums. A panel has four entries of each output together, so that those of
    two groups are interleaved.
    """
    (num_rows, num_registers), builder = size, writer.builder
    words, longs, bytes_ = (ir.VectorType(*each) for each in ((WORD, 4), (LONG, 2), (BYTE, 16)))
    first, second = (ir.Constant(words, [low, low + 4, low + 1, low + 5]) for low in (0, 2))
    starts = [
        writer.move(vectors, row, writer.move(LONG(0), groups, ENTRIES)) for row in range(num_rows)
    ]

    def add_products(pair, sums):
        place = writer.move(start, pair, 2 * ENTRIES * COLUMNS)
        entries = []
        for row in range(0, num_rows, 2):
            both = ir.Constant(longs, ir.Undefined)
            for lane in range(2):
                own = writer.read(LONG, writer.move(starts[row + lane], pair, 2 * ENTRIES))
                both = builder.insert_element(both, own, WORD(lane))
            entries.append(builder.bitcast(both, bytes_))
        news = []
        for index in range(num_registers):
            sides = [
                writer.read(words, place, ENTRIES * COLUMNS * half + 16 * index)
                for half in range(2)
            ]
            weights = [
                builder.bitcast(builder.shuffle_vector(*sides, chosen), bytes_)
                for chosen in (first, second)
            ]
            news += [
                writer.call("llvm.aarch64.neon.smmla.v4i32.v16i8", old, own, weight)
                for own, olds in zip(entries, sums_of(index, sums), strict=True)
                for old, weight in zip(olds, weights, strict=True)
            ]
        return news

    def sums_of(index, sums):
        own = sums[index * num_rows : (index + 1) * num_rows]
        return [own[row : row + 2] for row in range(0, num_rows, 2)]

    nothing = [ir.Constant(words, [0] * 4)]
    pairs = builder.lshr(groups, LONG(1))
    found = writer.loop(pairs, nothing * (num_rows * num_registers), add_products)
    highs, lows = (ir.Constant(words, each) for each in ([0, 1, 4, 5], [2, 3, 6, 7]))
    return [
        builder.shuffle_vector(*sums_of(index, found)[row // 2], lows if row % 2 else highs)
        for row in range(num_rows)
        for index in range(num_registers)
    ]


@compiled
def fill_tiles(count) -> int:
    """Round a number of vectors up to whole tiles."""
    return -(-count // ROWS) * ROWS


@compiled
def copy_rows(states, count, width) -> tuple[np.ndarray, np.ndarray]:
    """Copy float32 vectors, padded to whole tiles."""
    rows = np.zeros((fill_tiles(count), width), np.float32)
    for row in range(count):
        rows[row] = states[row, :width]
    return rows.view(np.uint8), np.zeros(len(rows), np.float32)


@compiled
def round_rows(states, count, width, groups) -> tuple[np.ndarray, np.ndarray]:
    """Quantise vectors to int8, each by its largest entry.

    Returns
    -------
    tuple[ndarray, ndarray]
        Bytes, those of 0 as the instruction set has them, and the largest entry of each vector
        without its sign. Vectors are added until tiles are full.
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
def prepare_rows(states, count, width, panels) -> tuple[np.ndarray, np.ndarray]:
    """Quantise or copy vectors into the form that tiles read."""
    if is_float(panels):
        return copy_rows(states, count, width)
    return round_rows(states, count, width, panels.shape[1])


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
        The matrix, as `dragoman.kernels.cpu_search.weight_layout.Matrix` has it.
    outputs : ndarray
        Likewise.
    width : int
        Entries of each vector.
    products : ndarray
        Where the products are written, one vector's a row: as many rows as fill tiles, and as many
        columns as all panels have.
    """
    groups = panels.shape[1]
    own_rows = prepare_rows(states, count, width, panels)
    rows, sizes = borrow(own_rows)
    for panel in range(len(panels)):
        for start in range(0, count, ROWS):
            multiply_tile(
                panels,
                rows[start].ctypes.data,
                count - start,
                sizes[start:].ctypes.data,
                panels[panel].ctypes.data,
                groups,
                outputs[panel].ctypes.data,
                products[start, panel * COLUMNS :].ctypes.data,
                4 * products.shape[1],
            )
    keep_alive(own_rows)
