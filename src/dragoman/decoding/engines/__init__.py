"""The engines that search, and `select`, the one table that says which runs and why.

The reference is the model itself; `cpu` is compiled and needs no PyTorch; `cuda` is for GPUs.
Imports kernels, models, and hypotheses and penalties of `decoding.search`.
"""
