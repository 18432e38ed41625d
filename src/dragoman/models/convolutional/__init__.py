"""Convolutional encoder–decoder models: ByteNet and ConvS2S.

Imports `dragoman.models.attention`, `layers`, `positions`, `interface` and `state`; no other
family.
"""
