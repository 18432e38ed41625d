"""The engine for CPUs: weights, search and single steps compiled by Numba, without PyTorch.

Imports `dragoman.kernels.cpu_search`.
"""
