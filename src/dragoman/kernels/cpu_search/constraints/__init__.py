"""Compiled constraints of the search on a CPU: required terms, samples, short-listed vocabularies.

Imports modules of `dragoman.kernels.cpu_search` below `slot_search`, which calls it.
"""
