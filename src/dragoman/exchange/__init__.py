"""Convert models to and from the formats of other toolkits.

Imports models, text and the model folder.
"""
