"""Look inside a model: attention, attribution and explanations.

Imports models and decoding.
"""
