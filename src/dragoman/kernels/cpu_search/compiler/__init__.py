"""Compile functions with Numba, keep them on disk, and write vector instructions as LLVM code.

Imports `dragoman.eight_bits`, `dragoman.kernels.processor` and `weight_layout` of the package
above; every compiled function imports it.
"""
