"""Data: from text files to batches of token ids."""
