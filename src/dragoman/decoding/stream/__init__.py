"""Streams of lines: windows in constant memory, resumable output, progress.

Imports the translator.
"""
