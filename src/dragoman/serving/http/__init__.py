"""What happens before a protocol is asked: connections, limits, keys, load shedding, log lines.

Knows no protocol and no model.
"""
