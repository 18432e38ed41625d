"""Recurrent encoder–decoder models: seq2seq, RNNsearch, Luong, GNMT and Deep-Att.

Imports `dragoman.models.attention`, `layers`, `interface` and `state`; no other family.
"""
