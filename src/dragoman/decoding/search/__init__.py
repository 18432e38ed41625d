"""Beam search over any model: scorer, hypotheses, penalties, sampling, ensembles.

Imports the seam `dragoman.models.interface`, and no engine.
"""
