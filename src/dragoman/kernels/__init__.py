"""Kernels: a fast implementation of an operation beside the plain one that it must equal.

`training` (Triton, and Numba on a CPU), `cuda_search` (Triton) and `cpu_search` (Numba). Imports
`dragoman.shapes`, `eight_bits` and `errors`; models and decoding import it.
"""
