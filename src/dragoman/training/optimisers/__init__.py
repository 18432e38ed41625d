"""Optimisers, learning-rate schedules and the learning-rate finder.

May import options and kernels of the project; knows neither batches nor models' families.
"""
