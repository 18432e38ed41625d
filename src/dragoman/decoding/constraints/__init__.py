"""Lexical constraints: glossaries, required terms, forbidden words.

Imports `dragoman.text`, `decoding.search`, and the tables of `dragoman.kernels.cpu_search.task`.
"""
