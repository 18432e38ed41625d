"""The web page: its own protocol, files and exports; ``static`` is served as it is.

Imports the service and `dragoman.insight`; the page itself is plain HTML, CSS and modules.
"""
