"""Checkpoints on disk, recovery from damaged ones, and averages of their weights.

Imports the model folder and files; nothing here trains.
"""
