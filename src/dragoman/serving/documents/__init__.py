"""Document translation: formats parsed into texts and written back, and a store of results.

Imports `dragoman.serving.markup`.
"""
