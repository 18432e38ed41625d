"""Beam search with a Transformer on a CPU, compiled by Numba, in int8 or float32.

Imports `dragoman.eight_bits`, `dragoman.shapes` and `dragoman.kernels.processor`; never PyTorch.
`slot_search` is the search, `steps` single steps for other searches, `compiler` how it is compiled.
"""
