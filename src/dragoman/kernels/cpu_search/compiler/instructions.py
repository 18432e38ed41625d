"""Numba decorators of compiled functions, and intrinsics on vector registers of 16 numbers.

Numba compiles for the processor at hand; check `dragoman.kernels.processor.can_compile` before
importing this module.
"""

import platform
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from dragoman.kernels.cpu_search.compiler.compile_cache import CompileCache
from dragoman.kernels.cpu_search.weight_layout import LANES
from dragoman.kernels.processor import aim_compiler

aim_compiler()

REGISTER = 4 * LANES
"""Bytes of a vector register."""

HALF, WORD, LONG, FRACTION = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
HALVES, WORDS, FRACTIONS = (ir.VectorType(kind, LANES) for kind in (HALF, WORD, FRACTION))

EXP2_COEFFICIENTS = (
    1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0
)  # fmt: skip
"""Polynomial of 2^x for x in [−½, ½], highest power first; right to two units of the last place."""
LOWEST_EXPONENT = -126.0
"""The lowest exponent of a normal float32."""

Intrinsic = tuple[Any, Callable]
"""Signature of an intrinsic, and the function that generates its code."""


def _compiler(
    *freedoms: str, is_inlined: bool = False, is_entry: bool = False
) -> Callable[[Callable], Callable]:
    """Make a decorator that compiles a function on its first call and caches the result on disk."""
    options = {
        "nogil": True,
        "error_model": "numpy",
        "fastmath": {"contract", *freedoms},
        "no_cfunc_wrapper": True,
        "forceinline": is_inlined,
    }

    def compile_later(function: Callable) -> Callable:
        found = numba.njit(**options)(function)
        found._cache = CompileCache(function, is_entry=is_entry)
        return found

    return compile_later


# Fused multiply-add is allowed everywhere; reordering of sums only in `compiled_freely`.
compiled = _compiler()
compiled_freely = _compiler("reassoc", "nsz")
# Always inlined: for functions of many arguments, which would all be copied.
compiled_inline = _compiler(is_inlined=True)
# Entry points, which only Python calls.
compiled_entry = _compiler(is_entry=True)


@intrinsic
def as_int(context, fraction) -> Intrinsic:
    """Reinterpret the bits of a float as an integer."""

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], WORD)

    return types.int32(types.float32), write


@intrinsic
def as_float(context, number) -> Intrinsic:
    """Reinterpret the bits of an integer as a float."""

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], FRACTION)

    return types.float32(types.int32), write


@intrinsic
def is_float(context, numbers) -> Intrinsic:
    """Return, at compile time, whether an array is float32, so that the other branch is dropped."""
    found = int(numbers.dtype == types.float32)

    def write(_context, _builder, _signature, _arguments):
        return ir.Constant(ir.IntType(1), found)

    return types.boolean(numbers), write


@intrinsic
def never_inline(context) -> Intrinsic:
    """Forbid inlining of the function that calls this.

    Notes
    -----
    Within a large function LLVM no longer vectorises these loops.
    """

    def write(_context, builder, _signature, _arguments):
        builder.function.attributes.add("noinline")

    return types.void(), write


@intrinsic
def borrow(context, value) -> Intrinsic:
    """Use arrays, which the caller keeps alive, without reference counts.

    Notes
    -----
    Every view of an array changes its count by two atomic operations. Cores that share the array
    wait for one another: a quarter of the time when many sentences are translated.
    """

    def write(context, builder, signature, arguments):
        return _forget_owners(context, builder, signature.args[0], arguments[0])

    return value(value), write


def _forget_owners(context, builder, kind, value):
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = ir.Constant(array.meminfo.type, None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for place, each in enumerate(kind):
            part = _forget_owners(context, builder, each, builder.extract_value(value, place))
            value = builder.insert_value(value, part, place)
    return value


@intrinsic
def keep_alive(context, value) -> Intrinsic:
    """Keep borrowed arrays alive up to here."""

    def write(_context, _builder, _signature, _arguments):
        pass

    return types.void(value), write


@intrinsic
def atomic_add(context, address, count) -> Intrinsic:
    """Add to a shared integer atomically; return its former value."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), write


@intrinsic
def atomic_load(context, address) -> Intrinsic:
    """Load a shared integer with acquire semantics."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), write


@intrinsic
def atomic_store(context, address, number) -> Intrinsic:
    """Store a shared integer with release semantics."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        builder.store_atomic(arguments[1], place, "release", 8)

    return types.void(types.int64, types.int64), write


@intrinsic
def compare_and_swap(context, address, old, new) -> Intrinsic:
    """Replace a shared integer if it still has the expected value."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        found = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(types.int64, types.int64, types.int64), write


@intrinsic
def pause(context) -> Intrinsic:
    """Execute the processor's spin-wait hint."""

    def write(_context, builder, _signature, _arguments):
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(
                cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), []
            )

    return types.void(), write


class Writer:
    """Generate LLVM code for vector registers.

    Parameters
    ----------
    builder : ir.IRBuilder
        What puts them into a function.
    """

    def __init__(self, builder) -> None:
        self.builder = builder

    def call(self, name, *arguments) -> ir.Value:
        """Call an LLVM intrinsic whose result has the type of its first argument."""
        return self.call_as(arguments[0].type, name, *arguments)

    def call_as(self, kind, name, *arguments) -> ir.Value:
        """Call an LLVM intrinsic with a given result type."""
        whole = ir.FunctionType(kind, [each.type for each in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, whole, name)
        return self.builder.call(function, arguments, fastmath=())

    def read(self, kind, address, offset=0) -> ir.Value:
        """Load from an address plus an offset in bytes."""
        return self.builder.load(self._place(kind, address, offset), align=1)

    def write(self, value, address, offset=0) -> None:
        """Store at an address plus an offset in bytes."""
        self.builder.store(value, self._place(value.type, address, offset), align=1)

    def move(self, address, steps, size) -> ir.Value:
        """Advance an address by a number of elements."""
        steps, size = (LONG(each) if isinstance(each, int) else each for each in (steps, size))
        return self.builder.add(address, self.builder.mul(steps, size))

    def repeat(self, number, lanes=LANES) -> ir.Value:
        """Broadcast a number to all lanes of a register."""
        nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self.builder.insert_element(nothing, number, WORD(0))
        same = ir.Constant(ir.VectorType(WORD, lanes), [0] * lanes)
        return self.builder.shuffle_vector(first, nothing, same)

    def add_up(self, register) -> ir.Value:
        """Sum the lanes of a float register, in any order."""
        kind = ir.FunctionType(FRACTION, [FRACTION, FRACTIONS])
        name = "llvm.vector.reduce.fadd.v16f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [FRACTION(0), register], fastmath=("reassoc",))

    def find_largest(self, register) -> ir.Value:
        """Return the largest lane of a float register."""
        kind = ir.FunctionType(FRACTION, [FRACTIONS])
        name = "llvm.vector.reduce.fmax.v16f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [register], fastmath=("nnan",))

    def loop(self, count, values, body) -> list[ir.Value]:
        """Generate a loop.

        Parameters
        ----------
        count : ir.Value
            Number of iterations, at least one.
        values : Sequence[ir.Value]
            Initial values of the loop variables.
        body : Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]
            Generates one iteration from its index and the variables; returns their next values.
        """
        builder, before = self.builder, self.builder.block
        inside, behind = (builder.append_basic_block() for _ in range(2))
        builder.branch(inside)
        builder.position_at_end(inside)
        number, *olds = (builder.phi(each.type) for each in (count, *values))
        news = [builder.add(number, LONG(1))]
        news += body(number, olds)
        for old, new, first in zip((number, *olds), news, (LONG(0), *values), strict=True):
            old.add_incoming(first, before)
            old.add_incoming(new, builder.block)
        builder.cbranch(builder.icmp_unsigned("<", news[0], count), inside, behind)
        builder.position_at_end(behind)
        return news[1:]

    def _place(self, kind, address, offset):
        address = self.builder.add(address, LONG(offset))
        return self.builder.inttoptr(address, kind.as_pointer())
