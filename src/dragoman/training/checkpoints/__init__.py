"""Checkpoints on disk, recovery from damaged ones, and weight averaging.

Imports the model folder and files; nothing here trains.
"""
