"""The verbs that read text and write translations, scores or pictures, one a file.

May import everything but the verbs of `model_verbs`; heavy modules only when a verb runs.
"""
