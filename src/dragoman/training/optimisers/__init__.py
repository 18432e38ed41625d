"""Optimisers, learning-rate schedules and the learning-rate finder.

The optimisers import `updates.sharding` alone; the learning-rate finder assembles a run and updates
it.
"""
