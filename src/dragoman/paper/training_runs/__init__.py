"""Runs of “dragoman train” for experiments: corpora, runs gone on with, outcomes.

Imports training and evaluation, never an experiment.
"""
