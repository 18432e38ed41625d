"""BPE-dropout: training pairs segmented anew in every pass, prepared ahead of training.

Imports `dragoman.data.store` and `dragoman.text`.
"""
