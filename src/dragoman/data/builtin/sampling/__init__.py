"""Sentences, clauses and noun phrases drawn at random from the lexicon, as meanings.

Imports lexicon and meaning.
"""
