"""Training: from batches to trained weights, with checkpoints, validation and a log."""
