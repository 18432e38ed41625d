"""Sample sentences, clauses and noun phrases from the lexicon, as meanings.

Imports lexicon, meaning, and the agreement of subjects in `languages.english_phrases`.
"""
