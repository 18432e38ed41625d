"""Positional encodings, and criteria that judge them.

Imports nothing of models but `layers`; `sinusoids` does not even need PyTorch.
"""
