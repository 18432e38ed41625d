"""Documents of several formats taken apart into texts and put together again, and kept for clients.

Imports `dragoman.serving.markup`.
"""
