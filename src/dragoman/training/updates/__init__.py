"""From batches to one update of the weights: gradients, accumulation, data parallelism, sharding.

Imports models, kernels, data, objectives and checkpoints; the loop (`dragoman.training.loop`) is
above it.
"""
