"""What an experiment yields, written down, drawn, printed and collected into a page.

Imports nothing of the experiments.
"""
