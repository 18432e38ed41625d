"""Claims of the lecture notes on small models: worked attention, positions, gradients, recall.

Imports tasks, report and training runs of `dragoman.paper`.
"""
