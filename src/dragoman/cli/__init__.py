"""The command ``dragoman``: its verbs, their flags, their help, and how errors are told.

A verb is one file of `model_verbs` or `text_verbs` and one line of `verb_table`. May import
everything; heavy modules only when a verb runs, so that ``--help`` is fast.
"""
