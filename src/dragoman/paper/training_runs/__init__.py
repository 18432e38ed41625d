"""Runs of “dragoman train” for experiments: corpora, resumed runs, results.

Imports training and evaluation, never an experiment.
"""
