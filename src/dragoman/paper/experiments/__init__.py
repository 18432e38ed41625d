"""The experiments: one module each, by table of the paper, by claim, by lecture note.

Imports tasks, report and training runs of `dragoman.paper`; the verb “paper” starts them.
"""
