"""HTTP before the protocols: connections, request limits, API keys, load shedding, errors, logs.

Imports metrics, options and types of the server; knows no protocol and no model.
"""
