"""What is minimised: likelihood, consistency of two readings, reward, token cut-off.

Imports models and kernels; knows nothing of optimisers or the loop.
"""
