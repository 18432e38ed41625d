"""How functions are compiled by Numba and kept on disk, and vector instructions of our own.

Imports `dragoman.kernels.processor` alone; everything compiled imports it.
"""
