"""The prepared corpus on disk: cleaning, encoding, memory-mapped text and ids, digests.

Imports `dragoman.text` and `dragoman.data.workers`.
"""
