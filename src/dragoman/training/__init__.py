"""From batches to trained weights."""
