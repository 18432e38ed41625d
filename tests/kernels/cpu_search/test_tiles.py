"""Products: exact for what was rounded, whatever the neighbours and the instruction set."""

import ctypes
import json
import os
import shutil
import subprocess
import sys

import llvmlite.binding as llvm
import numpy as np
import pytest
import tests.kernels.cpu_search.compiler  # noqa: F401
from llvmlite import ir

from dragoman.eight_bits import round_matrix
from dragoman.kernels.cpu_search.tiles import (
    ROWS,
    fill_tiles,
    multiply_rows,
    round_rows,
    write_tile,
)
from dragoman.kernels.cpu_search.weight_layout import (
    COLUMNS,
    LARGEST,
    find_zero,
    lay_out,
    lay_out_floats,
)
from dragoman.kernels.processor import INSTRUCTION_SETS, VARIABLE, list_executable

SHAPES = [(64, 8), (100, 16), (3, 5), (130, 66)]


def make_matrix(shape, seed=1):
    chance = np.random.default_rng(seed)
    weight = round_matrix(chance.normal(size=shape).astype(np.float32))
    return weight, chance.normal(size=shape[0]).astype(np.float32)


def make_vectors(count, width):
    chance = np.random.default_rng(2)
    sizes = np.logspace(-2, 2, count)[:, None]
    return (chance.normal(size=(count, width)) * sizes).astype(np.float32)


def multiply(states, matrix):
    products = np.empty((fill_tiles(len(states)), matrix.outputs[:, 0].size), np.float32)
    multiply_rows(states, len(states), *matrix, products)
    return products[: len(states)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 11])
def test_products_are_exact_for_what_was_rounded(shape, count):
    weight, bias = make_matrix(shape)
    states = make_vectors(count, shape[1])
    steps = np.abs(states).max(1, keepdims=True) / LARGEST
    rounded = np.rint(states / steps) * steps.astype(np.float64)
    expected = rounded @ (weight.numbers * weight.scales[:, None].astype(np.float64)).T + bias
    found = multiply(states, lay_out(weight, bias))[:, : shape[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_neighbours_change_no_bit():
    states, matrix = make_vectors(13, 66), lay_out(*make_matrix((130, 66)))
    together = multiply(states, matrix)
    for row in range(13):
        assert np.array_equal(multiply(states[row : row + 1], matrix)[0], together[row])


def test_the_largest_entries_are_rounded_to_the_ends():
    states = np.array([[1, -2, 0.5, 0], [0, 0, 0, 0]], np.float32)
    rounded, sizes = round_rows(states, 2, 4, 2)
    assert rounded.shape == (ROWS, 8)
    entries = (rounded[:2, :4].astype(np.int64) - find_zero() + 128) % 256 - 128
    assert entries.tolist() == [[64, -LARGEST, 32, 0], [0] * 4]
    assert sizes[0] == 2
    assert not rounded[:, 4:].any()


@pytest.mark.parametrize(("count", "tiles"), [(0, 0), (1, 1), (ROWS, 1), (ROWS + 1, 2)])
def test_tiles_are_filled(count, tiles):
    assert fill_tiles(count) == tiles * ROWS


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", [1, 2, 4, ROWS, 11])
def test_products_in_float_are_those_of_the_matrices(shape, count):
    chance = np.random.default_rng(1)
    weight = chance.normal(size=shape).astype(np.float32)
    bias = chance.normal(size=shape[0]).astype(np.float32)
    states = make_vectors(count, shape[1])
    found = multiply(states, lay_out_floats(weight, bias))[:, : shape[0]]
    expected = states.astype(np.float64) @ weight.T.astype(np.float64) + bias
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


# Instruction sets


SHAPE, COUNT = (130, 66), 13
PRODUCTS = """
import sys
import numpy as np
from dragoman.eight_bits import Rounded
from dragoman.kernels.cpu_search.weight_layout import lay_out, lay_out_floats
from dragoman.kernels.cpu_search.tiles import fill_tiles, multiply_rows
given = np.load(sys.argv[1])
numbers, scales, bias, states = (given[name] for name in ("numbers", "scales", "bias", "states"))
floats = lay_out_floats(numbers * scales[:, None], bias)
for matrix in (lay_out(Rounded(numbers, scales), bias), floats):
    found = np.empty((fill_tiles(len(states)), matrix.outputs[:, 0].size), np.float32)
    multiply_rows(states, len(states), *matrix, found)
    sys.stdout.buffer.write(found[: len(states), : len(numbers)].tobytes())
"""


def run_with(name, script, *arguments):
    command = [sys.executable, "-c", script, *map(str, arguments)]
    environment = {**os.environ, VARIABLE: name}
    return subprocess.run(command, env=environment, check=True, capture_output=True).stdout


@pytest.mark.parametrize("name", list_executable())
def test_products_are_the_same_with_every_set(tmp_path, name):
    weight, bias = make_matrix(SHAPE)
    states, floats = make_vectors(COUNT, SHAPE[1]), weight.numbers * weight.scales[:, None]
    np.savez(tmp_path / "given.npz", **weight._asdict(), bias=bias, states=states)
    said = np.frombuffer(run_with(name, PRODUCTS, tmp_path / "given.npz"), np.float32)
    rounded, floating = said.reshape(2, COUNT, SHAPE[0])
    expected_rounded, expected_floats = (
        multiply(states, each)[:, : SHAPE[0]]
        for each in (lay_out(weight, bias), lay_out_floats(floats, bias))
    )
    if name == "portable":  # which may have no product and sum in one
        np.testing.assert_allclose(rounded, expected_rounded, rtol=1e-6, atol=1e-5)
        np.testing.assert_allclose(floating, expected_floats, rtol=1e-5, atol=1e-4)
    else:
        assert np.array_equal(rounded, expected_rounded)
        assert np.array_equal(floating, expected_floats)


def write_module(instructions, *, is_rounded):
    """Write a function of the eight arguments of a tile."""
    module = ir.Module("tile")
    kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)] * 8)
    function = ir.Function(module, kind, "tile")
    builder = ir.IRBuilder(function.append_basic_block())
    write_tile(builder, function.args, instructions, is_rounded=is_rounded)
    builder.ret_void()
    return str(module)


def compile_for_arm(text):
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "aarch64-unknown-linux-gnu"
    target = llvm.Target.from_triple(triple)
    features = "+neon,+dotprod,+i8mm"
    machine = target.create_target_machine(features=features, opt=2, reloc="pic")
    module = llvm.parse_assembly(text)
    module.triple = triple
    module.verify()
    return machine, module


def test_neon_multiplies_by_its_dot_product():
    machine, module = compile_for_arm(write_module("dotprod", is_rounded=True))
    assembly = machine.emit_assembly(module)
    kind = INSTRUCTION_SETS["dotprod"]
    assert assembly.count("sdot") == sum(rows * registers for rows, registers in kind.tiles)


def test_neon_multiplies_several_vectors_by_its_matrix_product():
    machine, module = compile_for_arm(write_module("i8mm", is_rounded=True))
    assembly = machine.emit_assembly(module)
    (one, registers), *higher = INSTRUCTION_SETS["i8mm"].tiles
    assert assembly.count("sdot") == one * registers
    assert assembly.count("smmla") == sum(rows * each for rows, each in higher)


ARM = shutil.which("aarch64-linux-gnu-gcc")
QEMU = shutil.which("qemu-aarch64-static") or shutil.which("qemu-aarch64")
HARNESS = """
#include <stdio.h>
extern void tile(long, long, long, long, long, long, long, long);
static const unsigned char vectors[] = {%s};
static const float sizes[] = {%s};
static const signed char panel[] = {%s};
static const unsigned int outputs[] = {%s};
static float products[%d];
int main(void) {
    tile((long)vectors, %d, (long)sizes, (long)panel, %d, (long)outputs, (long)products, %d);
    return fwrite(products, sizeof products, 1, stdout) != 1;
}
"""


def as_list(array):
    return ",".join(map(str, array.ravel().tolist()))


def run_on_arm(folder, name, num_rows, groups, given, *, is_rounded):
    source, binary, program = (folder / each for each in ("main.c", "tile.o", "tile"))
    count = num_rows * COLUMNS
    lists = map(as_list, given)
    source.write_text(HARNESS % (*lists, count, num_rows, groups, 4 * COLUMNS))
    machine, module = compile_for_arm(write_module(name, is_rounded=is_rounded))
    binary.write_bytes(machine.emit_object(module))
    subprocess.run([ARM, "-static", "-o", program, source, binary], check=True)
    done = subprocess.run([QEMU, "-cpu", "max", program], check=True, capture_output=True)
    assert ctypes.sizeof(ctypes.c_float) * count == len(done.stdout)
    return np.frombuffer(done.stdout, np.float32).reshape(num_rows, COLUMNS)


@pytest.mark.skipif(not (ARM and QEMU), reason="needs a compiler and an emulator for ARM")
@pytest.mark.parametrize(
    ("name", "is_rounded"), [("dotprod", True), ("i8mm", True), ("dotprod", False)]
)
@pytest.mark.parametrize("num_rows", [rows for rows, _ in INSTRUCTION_SETS["dotprod"].tiles])
def test_an_arm_processor_computes_the_same(tmp_path, name, is_rounded, num_rows):
    chance, groups = np.random.default_rng(5), 10
    outputs = np.zeros((3, COLUMNS), np.float32)
    outputs[1:] = chance.normal(size=(2, COLUMNS))
    sizes = chance.uniform(0.5, 2, num_rows).astype(np.float32)
    if is_rounded:
        vectors = chance.integers(-127, 128, (num_rows, groups * 4)).astype(np.int8)
        panel = chance.integers(-127, 128, (groups, COLUMNS, 4)).astype(np.int8)
        sums = np.einsum("rge,gce->rc", vectors.reshape(-1, groups, 4).astype(int), panel)
        expected = sums * outputs[1] * sizes[:, None] + outputs[2]
    else:
        vectors = chance.normal(size=(num_rows, groups)).astype(np.float32)
        panel = chance.normal(size=(groups, COLUMNS)).astype(np.float32)
        expected = vectors @ panel + outputs[2]
    given = (vectors.view(np.uint8), sizes, panel.view(np.int8), outputs.view(np.uint32))
    found = run_on_arm(tmp_path, name, num_rows, groups, given, is_rounded=is_rounded)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    if name != "dotprod":
        other = run_on_arm(tmp_path, "dotprod", num_rows, groups, given, is_rounded=is_rounded)
        assert np.array_equal(found, other)


SENTENCES = ["The dog sees a house.", "A red tree.", "Old garden near the big house!", "dog"]
TRANSLATE = """
import json, sys
from dragoman.decoding.translator import Translator
translator = Translator.load(sys.argv[1], "cpu", precision=sys.argv[2])
every = translator.translate_all(sys.argv[3:], num_best=2)
print(json.dumps([[each.text, each.score] for each in every]))
"""


# The first compiles for most of a minute, others with it for several.
WHOLE = [(name, each) for name in list_executable()[1:] for each in ("int8", "float32")]


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        pytest.param(*each, marks=[] if each == ("avx2", "int8") else pytest.mark.slow)
        for each in WHOLE
    ],
)
def test_whole_models_translate_with_every_set(tiny_folder, name, precision):
    expected, found = (
        json.loads(run_with(each, TRANSLATE, tiny_folder.path, precision, *SENTENCES))
        for each in (list_executable()[0], name)
    )
    for (text, score), (own, own_score) in zip(found, expected, strict=True):
        assert text == own
        assert score == pytest.approx(own_score, abs=1e-3)
