"""Lines in, lines out: windows in constant memory, resumable output, progress.

Imports the translator.
"""
