"""The engine for NVIDIA GPUs: a rebuilt Transformer whose whole search is one CUDA graph.

Imports `dragoman.kernels.cuda_search`, models and `decoding.search`; needs PyTorch.
"""
