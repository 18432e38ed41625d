"""Beam search over any model: scorer, hypotheses, penalties, sampling, ensembles.

Imports the interface of models, the types of `engines.search_engine`, and constraints;
`batched_search` alone chooses between engines.
"""
