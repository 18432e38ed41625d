"""Layers that all families share: embedding, feed-forward, norm, residual, experts.

Imports kernels; no layer knows the model around it.
"""
