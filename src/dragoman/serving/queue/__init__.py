"""Model queues: fair queueing, batching, model threads and processes.

Imports the decoding side; knows no protocol.
"""
