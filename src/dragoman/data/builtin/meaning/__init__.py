"""Meanings before any language says them, words marked with what they express, true alignments.

Imports nothing else of the built-in corpus.
"""
