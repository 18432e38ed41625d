"""Beam search over any model, its scorer, hypotheses, penalties, sampling and ensembles.

Imports the seam `dragoman.models.interface`, and no engine.
"""
