"""What this processor can execute, and what functions are compiled for."""

import functools

WIDE_REGISTERS = "avx512f"


@functools.cache
def can_compile() -> bool:
    """Say whether Numba can compile functions for this CPU.

    Returns
    -------
    bool
        True where it is installed and not switched off by its own variable.
    """
    try:
        from numba import config
        from numba.core.codegen import get_host_cpu_features  # noqa: F401
    except (ImportError, OSError):  # not there, or not for this system or version of NumPy
        return False
    return not config.DISABLE_JIT  # type: ignore[attr-defined]


@functools.cache
def list_features() -> frozenset[str]:
    """List what the processor at hand can execute.

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
    return frozenset(each[1:] for each in features if each.startswith("+"))


@functools.cache
def aim_compiler() -> None:
    """Have Numba use the whole width of registers; to be called before anything is compiled.

    Notes
    -----
    For some processors of Intel's LLVM prefers half of it, as the first of them lowered their
    clock for the rest; our loops are shorter with all of it (training `small` in bfloat16: 7 %).
    """
    from numba import config
    from numba.core.codegen import get_host_cpu_features

    if config.CPU_FEATURES is None and WIDE_REGISTERS in list_features():  # type: ignore[attr-defined]
        config.CPU_FEATURES = f"{get_host_cpu_features()},-prefer-256-bit"  # type: ignore[attr-defined]
