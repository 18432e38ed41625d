"""Triton kernels of training, each beside the plain PyTorch code that it must equal.

Imports `dragoman.kernels.language`, `dragoman.shapes`, and the types of packed batches from
`dragoman.data`; on a CPU the compiled functions in `cpu`. Models and training import it.
"""
