"""Triton kernels of beam search on a card: attention of a beam, its slots, its step, best tokens.

Imports nothing of Dragoman but `dragoman.kernels.language`.
"""
