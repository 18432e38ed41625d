"""The lexicon of the built-in corpus: nouns, verbs, adjectives, names, numbers, times, all forms.

Imports nothing else of the built-in corpus.
"""
