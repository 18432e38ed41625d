"""HTML and XML: tokens, segments, and tags put back into translations by word alignment.

Imports nothing of the server but its types.
"""
