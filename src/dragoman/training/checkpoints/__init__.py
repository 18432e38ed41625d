"""Checkpoints on disk, recovery from damaged ones, and weight averaging.

Imports weights, the model folder and optimisers, and `updates` for workers and shards; nothing here
trains.
"""
