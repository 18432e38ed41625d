"""What is computed of finished translations: alignments, scores, quality checks, unknown words.

Imports models and text; the translator is above it, except where types name it.
"""
