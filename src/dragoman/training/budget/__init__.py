"""Choose model size, batch, schedule and precision for a time budget, and keep to the budget.

Imports `assembly`, `updates` and `checkpoints` to time real updates; a run calls it once, before it
begins.
"""
