"""Synthetic tasks, and small models that learn them.

Imports models and data, never an experiment.
"""
