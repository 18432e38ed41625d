"""The engine for NVIDIA cards: a rebuilt Transformer whose whole search is one captured graph.

Imports `dragoman.kernels.cuda_search` and the general search; needs PyTorch.
"""
