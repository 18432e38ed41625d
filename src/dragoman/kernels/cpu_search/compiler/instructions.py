"""How functions are compiled, and instructions of our own: on registers of 16 numbers.

Numba compiles Python for the processor at hand; whoever imports this module has asked
`dragoman.kernels.processor.can_compile` before.
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
"""Bytes of a register."""

HALF, WORD, LONG, FRACTION = ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
HALVES, WORDS, FRACTIONS = (ir.VectorType(kind, LANES) for kind in (HALF, WORD, FRACTION))

EXP2_COEFFICIENTS = (
    1.5403530e-4, 1.3333558e-3, 9.6181291e-3, 5.5504109e-2, 2.4022651e-1, 6.9314718e-1, 1.0
)  # fmt: skip
"""Polynomial of 2^x for x in [−½, ½], highest power first; right to two units of the last place."""
LOWEST_EXPONENT = -126.0
"""The lowest exponent of a normal float32."""

Intrinsic = tuple[Any, Callable]
"""The types of what a function of our own instructions takes and gives, and what writes them."""


def _compiler(
    *freedoms: str, is_inlined: bool = False, is_entry: bool = False
) -> Callable[[Callable], Callable]:
    """Make what compiles a function when it is first called, and keeps the result in a file."""
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


# A product and a sum may become one operation; sums may be in any order only where that is said.
compiled = _compiler()
compiled_freely = _compiler("reassoc", "nsz")
# A part of whatever calls it: for many arguments, which would all be copied.
compiled_inline = _compiler(is_inlined=True)
# What only Python calls.
compiled_entry = _compiler(is_entry=True)


@intrinsic
def as_int(context, fraction) -> Intrinsic:
    """Read the bits of a fraction as those of a whole number."""

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], WORD)

    return types.int32(types.float32), write


@intrinsic
def as_float(context, number) -> Intrinsic:
    """Read the bits of a whole number as those of a fraction."""

    def write(_context, builder, _signature, arguments):
        return builder.bitcast(arguments[0], FRACTION)

    return types.float32(types.int32), write


@intrinsic
def is_float(context, numbers) -> Intrinsic:
    """Say whether an array is in float32, so that the other case is not even compiled."""
    found = int(numbers.dtype == types.float32)

    def write(_context, _builder, _signature, _arguments):
        return ir.Constant(ir.IntType(1), found)

    return types.boolean(numbers), write


@intrinsic
def stay_apart(context) -> Intrinsic:
    """Keep the function that calls this from becoming a part of those that call it.

    Notes
    -----
    Within a large function the compiler no longer sees how to compute many numbers at once.
    """

    def write(_context, builder, _signature, _arguments):
        builder.function.attributes.add("noinline")

    return types.void(), write


@intrinsic
def borrow(context, value) -> Intrinsic:
    """Use arrays without counting who uses them.

    Parameters
    ----------
    context : object
        Numba's.
    value : ndarray or tuple
        An array, or a tuple of arrays and others, which somebody else keeps: whoever calls the
        function that borrows them, or that function until it says `keep`.

    Notes
    -----
    Every view of an array is counted by two atomic operations. Where cores share the array they
    wait for one another: a quarter of the time in which many sentences are translated.
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
def keep(context, value) -> Intrinsic:
    """Keep arrays up to here that are borrowed."""

    def write(_context, _builder, _signature, _arguments):
        pass

    return types.void(value), write


@intrinsic
def take_numbers(context, address, count) -> Intrinsic:
    """Add to a whole number that threads share."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        return builder.atomic_rmw("add", place, arguments[1], "seq_cst")

    return types.int64(types.int64, types.int64), write


@intrinsic
def read_shared(context, address) -> Intrinsic:
    """Read a whole number that threads share, and whatever was written before it."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), write


@intrinsic
def write_shared(context, address, number) -> Intrinsic:
    """Write a whole number that threads share, behind all that was written before."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        builder.store_atomic(arguments[1], place, "release", 8)

    return types.void(types.int64, types.int64), write


@intrinsic
def swap_shared(context, address, old, new) -> Intrinsic:
    """Change a whole number that threads share, if it is what it was thought to be."""

    def write(_context, builder, _signature, arguments):
        place = builder.inttoptr(arguments[0], LONG.as_pointer())
        found = builder.cmpxchg(place, arguments[1], arguments[2], "seq_cst", "seq_cst")
        return builder.extract_value(found, 1)

    return types.boolean(types.int64, types.int64, types.int64), write


@intrinsic
def rest(context) -> Intrinsic:
    """Let the processor rest for a moment while a thread asks again and again."""

    def write(_context, builder, _signature, _arguments):
        if platform.machine().lower() in ("x86_64", "amd64"):
            kind = ir.FunctionType(ir.VoidType(), [])
            builder.call(
                cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.sse2.pause"), []
            )

    return types.void(), write


class Writer:
    """Writes instructions.

    Parameters
    ----------
    builder : ir.IRBuilder
        What puts them into a function.
    """

    def __init__(self, builder) -> None:
        self.builder = builder

    def call(self, name, *arguments) -> ir.Value:
        """Call an instruction whose result is of the type of its first argument."""
        return self.call_as(arguments[0].type, name, *arguments)

    def call_as(self, kind, name, *arguments) -> ir.Value:
        """Call an instruction."""
        whole = ir.FunctionType(kind, [each.type for each in arguments])
        function = cgutils.get_or_insert_function(self.builder.module, whole, name)
        return self.builder.call(function, arguments, fastmath=())

    def read(self, kind, address, offset=0) -> ir.Value:
        """Read what lies some bytes behind an address."""
        return self.builder.load(self._place(kind, address, offset), align=1)

    def write(self, value, address, offset=0) -> None:
        """Write something some bytes behind an address."""
        self.builder.store(value, self._place(value.type, address, offset), align=1)

    def move(self, address, steps, size) -> ir.Value:
        """Go some steps from an address."""
        steps, size = (LONG(each) if isinstance(each, int) else each for each in (steps, size))
        return self.builder.add(address, self.builder.mul(steps, size))

    def repeat(self, number, lanes=LANES) -> ir.Value:
        """Put a number into all places of a register."""
        nothing = ir.Constant(ir.VectorType(number.type, lanes), ir.Undefined)
        first = self.builder.insert_element(nothing, number, WORD(0))
        same = ir.Constant(ir.VectorType(WORD, lanes), [0] * lanes)
        return self.builder.shuffle_vector(first, nothing, same)

    def add_up(self, register) -> ir.Value:
        """Add up the fractions of a register, in whatever order is fast."""
        kind = ir.FunctionType(FRACTION, [FRACTION, FRACTIONS])
        name = "llvm.vector.reduce.fadd.v16f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [FRACTION(0), register], fastmath=("reassoc",))

    def find_largest(self, register) -> ir.Value:
        """Find the largest fraction of a register."""
        kind = ir.FunctionType(FRACTION, [FRACTIONS])
        name = "llvm.vector.reduce.fmax.v16f32"
        function = cgutils.get_or_insert_function(self.builder.module, kind, name)
        return self.builder.call(function, [register], fastmath=("nnan",))

    def loop(self, count, values, body) -> list[ir.Value]:
        """Write a loop.

        Parameters
        ----------
        count : ir.Value
            How often; at least once.
        values : Sequence[ir.Value]
            What goes into the first round.
        body : Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]]
            Given the number of the round and what goes into it, writes it, and returns what goes
            into the next.
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
