"""Translation models: what is learnt, and how it is computed."""
