"""Training pairs segmented afresh in every pass (BPE-dropout), prepared ahead of training.

Imports `dragoman.data.store` and `dragoman.text`.
"""
