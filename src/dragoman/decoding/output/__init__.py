"""What is computed of finished translations: alignments, scores, quality checks, unknown words.

Imports models and text; `alignments` alone imports the translator, which imports the rest.
"""
