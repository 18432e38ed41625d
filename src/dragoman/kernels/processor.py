"""Detect the processor's vector instructions, and choose what functions are compiled for.

`INSTRUCTION_SETS` is the one table of instructions that multiply in int8;
`dragoman.kernels.cpu_search.tiles` generates them.
"""

import ctypes
import functools
import os
import platform
import sys
from pathlib import Path
from typing import NamedTuple

from dragoman.errors import OptionError

VARIABLE = "DRAGOMAN_INSTRUCTIONS"
"""The environment variable that chooses an instruction set by its name."""
WIDE_REGISTERS = "avx512f"

_X86_WIDE = ("avx512", "avx10", "amx")
_X86_AVX = (*_X86_WIDE, "avx", "fma", "f16c", "vaes", "vpclmulqdq", "xop")


class InstructionSet(NamedTuple):
    """Instructions that multiply in int8, and the tile sizes that fit the registers.

    `needs` are LLVM's names of the required features; features that begin with one of `hides` are
    switched off when a set is chosen by name, so that it runs as on a processor without them. A
    register has `lanes` numbers of 32 bits. `tiles` lists, from the smallest, vectors by registers
    of outputs whose sums fit the registers. `zero` is the byte that stands for 0 in a quantised
    vector: 128 where the instruction reads unsigned bytes.
    """

    needs: frozenset[str]
    hides: tuple[str, ...]
    lanes: int
    tiles: tuple[tuple[int, int], ...]
    zero: int

    @property
    def rows(self) -> int:
        """Vectors of the largest tile."""
        return self.tiles[-1][0]


INSTRUCTION_SETS = {
    "avx512vnni": InstructionSet(
        frozenset({"avx512vnni", "avx512bw", "avx512vl"}),
        (), 16, ((1, 4), (2, 4), (4, 4), (6, 4)), 128,
    ),
    "avxvnni": InstructionSet(
        frozenset({"avxvnni", "avx2", "fma"}), _X86_WIDE, 8, ((1, 8), (2, 4), (4, 2), (6, 2)), 128
    ),
    "avx2": InstructionSet(
        frozenset({"avx2", "fma"}), (*_X86_WIDE, "avxvnni"), 8, ((1, 8), (2, 4), (4, 2)), 0
    ),
    "i8mm": InstructionSet(
        frozenset({"neon", "dotprod", "i8mm"}), ("sve",), 4, ((1, 16), (2, 8), (6, 4)), 0
    ),
    "dotprod": InstructionSet(
        frozenset({"neon", "dotprod"}), ("i8mm", "sve"), 4, ((1, 16), (2, 8), (6, 4)), 0
    ),
    "portable": InstructionSet(
        frozenset(), (*_X86_AVX, "dotprod", "i8mm", "sve"), 4, ((1, 4), (4, 2)), 0
    ),
}  # fmt: skip
"""By name, the fastest first; the last one runs wherever Numba compiles."""


@functools.cache
def can_compile() -> bool:
    """Say whether Numba can compile functions for this CPU."""
    try:
        from numba import config
        from numba.core.codegen import get_host_cpu_features  # noqa: F401
    except (ImportError, OSError):  # not there, or not for this system or version of NumPy
        return False
    return not config.DISABLE_JIT  # type: ignore[attr-defined]


@functools.cache
def list_features() -> frozenset[str]:
    """List the instruction-set features of this processor.

    Returns
    -------
    frozenset[str]
        The names that LLVM has for sets of instructions; those that Numba's variable
        NUMBA_CPU_FEATURES names, if it is set.
    """
    from numba import config
    from numba.core.codegen import get_host_cpu_features

    said = config.CPU_FEATURES  # type: ignore[attr-defined]
    features = (get_host_cpu_features() if said is None else said).split(",")
    found = {each[1:] for each in features if each.startswith("+")}
    return frozenset(found if said is not None else found | _list_arm_features())


def _list_arm_features() -> set[str]:
    """List the features of 64-bit ARM processors that LLVM does not report."""
    if platform.machine().lower() not in ("aarch64", "arm64"):
        return set()
    if sys.platform == "darwin":  # every Mac with such a processor, the first apart
        return {"neon", "dotprod"} | ({"i8mm"} if _has_apple_feature("FEAT_I8MM") else set())
    info = Path("/proc/cpuinfo")  # what the kernel tells programs as HWCAP and HWCAP2, by names
    words = info.read_text(encoding="ascii", errors="replace").split() if info.exists() else []
    names = {"asimddp": "dotprod", "i8mm": "i8mm"}
    return {"neon"} | {names[word] for word in words if word in names}


def _has_apple_feature(name: str) -> bool:
    """Ask macOS whether its processor has a feature."""
    found, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
    ask = ctypes.CDLL(None).sysctlbyname
    asked = f"hw.optional.arm.{name}".encode()
    failed = ask(asked, ctypes.byref(found), ctypes.byref(size), None, ctypes.c_size_t(0))
    return not failed and found.value == 1


def list_executable() -> list[str]:
    """List the instruction sets that this processor can execute."""
    features = list_features()
    return [name for name, each in INSTRUCTION_SETS.items() if each.needs <= features]


@functools.cache
def choose_instructions() -> str:
    """Choose the instruction set for int8 products.

    Returns
    -------
    str
        The one that the environment variable DRAGOMAN_INSTRUCTIONS names, else the fastest that
        this processor can execute.

    Raises
    ------
    OptionError
        If the processor cannot execute the one that is named.
    """
    said, executable = os.environ.get(VARIABLE, ""), list_executable()
    if said and said not in executable:
        raise OptionError(
            f"{VARIABLE} is “{said}”, which this processor cannot execute; "
            f"unset it or give one of: {', '.join(executable)}"
        )
    return said or executable[0]


@functools.cache
def aim_compiler() -> None:
    """Configure Numba's target; call this before anything is compiled.

    Notes
    -----
    For some processors of Intel's LLVM prefers half the width of registers, as the first of them
    lowered their clock for the rest; our loops are shorter with all of it (training `small` in
    bfloat16: 7 %).
    """
    from numba import config
    from numba.core.codegen import get_host_cpu_features

    if config.CPU_FEATURES is not None:  # type: ignore[attr-defined]
        return
    chosen = INSTRUCTION_SETS[choose_instructions()]
    host = [each for each in get_host_cpu_features().split(",") if each]
    if os.environ.get(VARIABLE):
        host = [f"-{each[1:]}" if each[1:].startswith(chosen.hides) else each for each in host]
    host += [f"+{each}" for each in sorted(chosen.needs) if f"+{each}" not in host]
    if f"+{WIDE_REGISTERS}" in host:
        host.append("-prefer-256-bit")
    config.CPU_FEATURES = ",".join(host)  # type: ignore[attr-defined]
