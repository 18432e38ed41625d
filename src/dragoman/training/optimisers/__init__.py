"""Optimisers and learning-rate schedules.

Imports models and options, and of training only `updates.sharding`.
"""
