"""Kernels: each a fast way to compute something, beside the plain way that it must equal."""
