"""Training objectives: likelihood, consistency of two forward passes, reward, token cut-off.

Imports models and kernels; knows nothing of optimisers or the loop.
"""
