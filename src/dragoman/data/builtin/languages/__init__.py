"""Realise meanings as words of English, French and Spanish.

Imports `dragoman.data.builtin.lexicon` and `dragoman.data.builtin.meaning`.
"""
