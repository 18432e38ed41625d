"""From a trained model and a text to its translation."""
