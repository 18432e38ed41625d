"""Look inside a model: what it attends to."""
