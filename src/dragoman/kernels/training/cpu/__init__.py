"""Training on a CPU, compiled by Numba: what stands between the products of packed sentences.

Each function here is the twin of a Triton kernel one folder up, and is called from the same place.
"""
