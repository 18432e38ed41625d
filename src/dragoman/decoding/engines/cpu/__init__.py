"""The engine for CPUs: weights, search and single steps compiled by Numba, without PyTorch.

Imports `dragoman.kernels.cpu_search`, constraints and models' options; only `cpu_decoder`, for
searches in Python, imports PyTorch.
"""
