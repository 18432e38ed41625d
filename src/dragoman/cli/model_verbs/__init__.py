"""The verbs that make a model or change a model folder, one a file, with what training needs.

May import everything but the verbs of `text_verbs`; heavy modules only when a verb runs.
"""
