"""From meaning to words: clauses and noun phrases in English, French and Spanish.

Imports lexicon and meaning.
"""
