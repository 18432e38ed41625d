"""Attention layers: one module each, chosen by `dragoman.models.transformer_layers`.

Self-attentions implement `self_attention.SelfAttention`. Imports `dragoman.kernels`, and of models
only `positions`.
"""
