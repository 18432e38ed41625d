"""Data: from text files to batches of token ids.

Imports `dragoman.text`; knows neither models nor training.
"""
