"""Choose model size, batch, schedule and precision for a time budget, and keep to the budget.

Times updates made by `dragoman.training.assembly`; a run calls it once, before it begins.
"""
