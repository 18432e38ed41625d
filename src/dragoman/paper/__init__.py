"""Experiments that reproduce the tables and claims of the paper and of the lecture notes."""
