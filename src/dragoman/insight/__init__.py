"""Look inside a model: attention, attribution and explanations."""
