"""Tables 1, 2 and 3 of the paper: complexity, costs, systems, variations, parameters.

Imports tasks, report and training runs of `dragoman.paper`.
"""
