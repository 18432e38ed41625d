"""Layers that models are made of: embedding, feed-forward, norm, residual, experts.

Imports kernels; no layer knows the model around it.
"""
