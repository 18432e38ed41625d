"""Model queues: fair queueing, batching, model threads and processes.

Imports the decoding side, `sentence_translation` and metrics; knows no protocol.
"""
