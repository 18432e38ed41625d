"""Published models: where they are, what they are, and how they come into the model home.

Imports the importers of other tools' models, the model folder, and what is below them.
"""
