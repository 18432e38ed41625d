"""The protocols that clients speak: parameters, answers and errors in their words.

Imports the service, documents and `dragoman.serving.http`; never a model.
"""
