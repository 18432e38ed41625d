"""Entropy and gradient of attention over random keys, by key width."""

from typing import NamedTuple

import torch

SCALES = ("1", "1/√d_k", "1/d_k")
NUM_KEYS = 64
_NUM_QUERIES, _QUERIES_AT_A_TIME = 4000, 500


class Sharpness(NamedTuple):
    """Statistics of attention over random keys.

    Attributes
    ----------
    variance : float
        Of the scores before softmax.
    entropy : float
        Mean of the weights' entropy, in nats.
    largest : float
        Mean of the largest weight.
    gradient : float
        Mean norm of the Jacobian of softmax, by which gradients shrink.
    """

    variance: float
    entropy: float
    largest: float
    gradient: float


def measure_sharpness(key_dim: int, seed: int) -> dict[str, Sharpness]:
    """Measure the statistics of attention over 64 random keys.

    Returns
    -------
    dict[str, Sharpness]
        By what scores are multiplied by, “1”, “1/√d_k” and “1/d_k”: averages over four thousand
        queries, each with keys of its own.
    """
    factors = dict(zip(SCALES, (1.0, key_dim**-0.5, 1 / key_dim), strict=True))
    generator = torch.Generator().manual_seed(seed)
    products = []
    for _ in range(_NUM_QUERIES // _QUERIES_AT_A_TIME):
        query = torch.randn(_QUERIES_AT_A_TIME, key_dim, 1, generator=generator)
        key = torch.randn(_QUERIES_AT_A_TIME, NUM_KEYS, key_dim, generator=generator)
        products.append((key @ query).squeeze(-1))
    found = {}
    for scale, factor in factors.items():
        scores = torch.cat(products) * factor
        weights = scores.softmax(-1)
        jacobian = torch.diag_embed(weights) - weights.unsqueeze(-1) * weights.unsqueeze(-2)
        found[scale] = Sharpness(
            variance=scores.var().item(),
            entropy=torch.special.entr(weights).sum(-1).mean().item(),
            largest=weights.max(-1).values.mean().item(),
            gradient=torch.linalg.matrix_norm(jacobian).mean().item(),
        )
    return found
