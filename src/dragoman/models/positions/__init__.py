"""How word order is told: positional encodings, and criteria that judge them.

Imports nothing but options and PyTorch; `sinusoids` not even that.
"""
