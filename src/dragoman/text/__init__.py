"""Text to token ids and back: normalisation, subwords, vocabularies, sentence splitting.

Imports nothing of Dragoman but files, errors and shapes.
"""
