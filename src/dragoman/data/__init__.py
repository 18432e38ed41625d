"""From two text files to batches of token ids."""
