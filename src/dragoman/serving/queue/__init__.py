"""Sentences of all clients waiting for a model: fair order, batches, threads, processes.

Imports the decoding side; knows no protocol.
"""
