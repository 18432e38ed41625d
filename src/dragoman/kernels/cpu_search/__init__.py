"""Transformers in eight bits on a CPU, compiled by Numba: reading, writing and searching."""
