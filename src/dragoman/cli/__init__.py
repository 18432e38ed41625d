"""The command ``dragoman``: one module for each verb, its flags, its help, and how errors are told.

May import everything; heavy modules only when a verb runs, so that ``--help`` is fast.
"""
