"""The prepared corpus on disk: cleaning, encoding, memory-mapped text and ids, checksums.

Imports `dragoman.text`, and of data corpus files, batches, order and workers.
"""
