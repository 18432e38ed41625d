"""What a translation must or must not contain: glossaries, required terms, forbidden words.

Imports `dragoman.text` and `dragoman.decoding.search`.
"""
