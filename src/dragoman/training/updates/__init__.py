"""From batches to one update of the weights: gradients, accumulation, data parallelism, sharding.

Imports models, kernels, data and objectives, and of training `checkpoints` and the precision in
`budget`; the loop (`dragoman.training.loop`) is above it.
"""
