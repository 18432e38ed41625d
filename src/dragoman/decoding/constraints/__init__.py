"""Lexical constraints: glossaries, required terms, forbidden words.

Imports `dragoman.text` and `dragoman.decoding.search`.
"""
