"""HTTP before the protocols: connections, request limits, API keys, load shedding, errors, logs.

Knows no protocol and no model.
"""
