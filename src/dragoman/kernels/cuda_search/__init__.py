"""Triton kernels of beam search on a GPU: attention, slots, one step, best tokens.

Imports `dragoman.kernels.language` and `dragoman.shapes` alone.
"""
