"""What the lecture notes say, shown in small: attention by hand, positions, gradients, recall.

Imports tasks, report and training runs of `dragoman.paper`.
"""
