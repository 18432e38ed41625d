"""Small tasks and the small models that learn them, for experiments.

Imports models and data, never an experiment.
"""
