"""The protocol of DeepL, version 2: texts, documents, glossaries.

Imports what all protocols share.
"""
