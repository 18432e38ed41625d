"""Document translation: formats parsed into texts and written back, and a store of results.

Imports `serving.markup` and the service that translates the texts.
"""
