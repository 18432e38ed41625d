"""Results of experiments: data types, files, plots, terminal output and the report page.

Imports nothing of the experiments.
"""
