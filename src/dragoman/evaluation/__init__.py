"""Score translations and compare systems.

Imports decoding and models.
"""
