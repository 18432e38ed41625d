"""Kernels of training in Triton, each beside the plain code that it must equal.

Imports `dragoman.kernels.language`, which says whether they run; models import it.
"""
