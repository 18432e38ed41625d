"""The web page: plain HTML, CSS and modules, served as they are."""
