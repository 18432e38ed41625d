"""Compiled constraints of the search on a CPU: required terms, forbidden tokens, samples.

Imports the rest of `dragoman.kernels.cpu_search`, which calls it.
"""
