"""Fine-tune a trained model on somebody's own lines: plan it, keep what it knew, tell what changed.

A run calls `general_text` and `recipe` before it begins, `outcome` when it is over.
"""
