"""The command ``dragoman``: one module for each verb or group of verbs, and how errors are told.

May import everything; heavy modules only when a verb runs, so that ``--help`` is fast.
"""
