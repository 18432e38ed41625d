"""Claims of the paper beyond its tables: sentence length, model size, parallel training.

Imports tasks, report and training runs of `dragoman.paper`.
"""
