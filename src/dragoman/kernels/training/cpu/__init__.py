"""Training kernels for a CPU, compiled by Numba: everything between the matrix products.

Each function is the counterpart of a Triton kernel in the package above, which calls it. Imports
`dragoman.kernels.cpu_search` for compiled decorators and intrinsics.
"""
