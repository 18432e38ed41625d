"""What bfloat16 would give on a CPU: products by vdpbf16ps beside those in float32 and in int8.

    python benchmarks/bfloat16_tiles.py [--rounds 9] [--results DIR]

The tiles are those of the compiled search, six vectors by 64 outputs with sums in registers,
without rounding and scaling, on one core that has AVX512_BF16; the kinds take turns, and the best
round of each counts. Errors are those of the products of normally distributed numbers, vectors and
matrices rounded as each kind does, relative to the norm of the exact products. It is the limit of
what a whole translation could win, as all else stays as it is.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search import tiles
from dragoman.kernels.cpu_search.compiler.instructions import FRACTION, HALF, WORD, Writer
from dragoman.kernels.cpu_search.weight_layout import COLUMNS, ENTRIES, LANES, LARGEST
from dragoman.kernels.processor import list_features
from record import RESULTS, require_commit, write_result

ROWS, REGISTERS = 6, 4
SHAPES = {
    "student": (1024, 256, 96),
    "base": (2048, 512, 96),
    "vocabulary": (32_000, 512, 96),
    "vocabulary_one_sentence": (32_000, 512, 6),
}
"""Outputs, inputs and vectors."""
OPERATIONS = 4e9


def _add_bfloat16(writer, total, entries, weights):
    """Accumulate products of pairs of bfloat16: vdpbf16ps, in assembler as llvmlite has no type."""
    halves = ir.VectorType(HALF, 2 * LANES)
    entries, weights = (writer.builder.bitcast(each, halves) for each in (entries, weights))
    kind = ir.FunctionType(total.type, [total.type, halves, halves])
    multiply = ir.InlineAsm(kind, "vdpbf16ps $3, $2, $0", "=v,0,v,v", side_effect=False)
    return writer.builder.call(multiply, [total, entries, weights])


KINDS = {
    "int8": (tiles._add_vnni, WORD, 4),
    "bfloat16": (_add_bfloat16, FRACTION, 2),
    "float32": (tiles._add_floats, FRACTION, 1),
}
"""What adds products, the type of sums, and how many inputs it takes at once."""


def make_product(name: str) -> Callable[..., None]:
    """Compile the product of one kind."""
    add, number, _ = KINDS[name]

    @intrinsic
    def multiply(context, vectors, panel, groups, products):
        def write(_context, builder, _signature, arguments):
            vectors, panel, groups, products = arguments
            writer, totals = Writer(builder), ir.VectorType(number, LANES)
            size = (ROWS, REGISTERS)
            sums = tiles._write_sums(writer, vectors, panel, groups, size, add, totals)
            for place, each in enumerate(sums):
                writer.write(each, products, 4 * LANES * place)

        return types.void(*[types.int64] * 4), write

    @numba.njit(nogil=True)
    def run(vectors, panels, groups, products, num_panels, num_tiles, repeats):
        for _ in range(repeats):
            for panel in range(num_panels):
                for tile in range(num_tiles):
                    multiply(
                        vectors + tile * ROWS * groups * ENTRIES,
                        panels + panel * groups * ENTRIES * COLUMNS,
                        groups,
                        products,
                    )

    return run


def measure(run: Callable[..., None], name: str, shape: tuple[int, int, int]) -> float:
    """Measure products a second of one kind and shape."""
    outputs, inputs, count = shape
    groups = inputs // KINDS[name][2]
    vectors = np.zeros(count * groups * ENTRIES, np.uint8)
    panels = np.zeros(outputs * groups * ENTRIES, np.uint8)
    products = np.empty(ROWS * COLUMNS, np.float32)
    places = vectors.ctypes.data, panels.ctypes.data, groups, products.ctypes.data
    size = outputs // COLUMNS, count // ROWS
    repeats = max(1, int(OPERATIONS / (outputs * inputs * count)))
    run(*places, *size, 1)
    started = time.perf_counter()
    run(*places, *size, repeats)
    return repeats * outputs * inputs * count / (time.perf_counter() - started)


def round_to_bfloat16(numbers: np.ndarray) -> np.ndarray:
    """Round to the nearest bfloat16, ties to even."""
    bits = numbers.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def round_to_steps(numbers: np.ndarray) -> np.ndarray:
    """Round each row to 127 steps on either side of 0."""
    steps = np.abs(numbers).max(1, keepdims=True) / LARGEST
    return np.rint(numbers / steps) * steps


def find_errors() -> dict[str, float]:
    """Compute the relative error of products by how their numbers are rounded."""
    chance = np.random.default_rng(1)
    vectors, matrix = (chance.normal(size=(512, 512)).astype(np.float32) for _ in range(2))
    exact = vectors.astype(np.float64) @ matrix.astype(np.float64).T
    found = {}
    for name, rounding in (("bfloat16", round_to_bfloat16), ("int8", round_to_steps)):
        left, right = (rounding(each).astype(np.float64) for each in (vectors, matrix))
        error = np.linalg.norm(left @ right.T - exact) / np.linalg.norm(exact)
        found[f"{name}_product_error"] = float(error)
    return found


def main() -> None:
    """Measure, print and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    if not {"avx512bf16", "avx512vnni"} <= list_features():
        parser.error("this processor has no AVX512_BF16 and AVX512_VNNI")
    require_commit()
    llvm.initialize_native_asmparser()
    runs = {name: make_product(name) for name in KINDS}
    figures = find_errors()
    for shape_name, shape in SHAPES.items():
        best = dict.fromkeys(KINDS, 0.0)
        for _ in range(options.rounds):
            for name, run in runs.items():
                best[name] = max(best[name], measure(run, name, shape))
        for name, rate in best.items():
            figures[f"{shape_name}_{name}_products_per_second"] = rate
        for rival in ("float32", "int8"):
            ratio = best["bfloat16"] / best[rival]
            figures[f"{shape_name}_bfloat16_ratio_to_{rival}"] = ratio
            print(f"{shape_name}: bfloat16 is {ratio:.2f} times as fast as {rival}")
    print(write_result("bfloat16_tiles", figures, seeds=[1], folder=options.results))


if __name__ == "__main__":
    main()
