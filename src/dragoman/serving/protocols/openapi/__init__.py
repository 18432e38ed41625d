"""The OpenAPI description of all protocols.

Imports the protocols' limits alone.
"""
