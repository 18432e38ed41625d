"""Training: from batches to trained weights, with checkpoints, validation and a log.

Imports everything below `dragoman.serving` and `dragoman.paper` but `insight` and `exchange`. `run`
is a whole run, `loop` the training loop, `assembly` what one update needs.
"""
