"""Experiments that reproduce the tables and claims of the paper and of the lecture notes.

Imports training, decoding, evaluation and models; the order of its folders is in pyproject.toml.
"""
