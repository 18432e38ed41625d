"""The coverage penalty (Wu et al., 2016)."""

import torch
from torch import Tensor

from dragoman.errors import OptionError
from dragoman.models.interface import DecoderState
from dragoman.shapes import Float


def coverage_penalty(
    coverage: Float[Tensor, "sentences beams source"], beta: float
) -> Float[Tensor, "sentences beams"]:
    r"""Compute the penalty for source tokens that received little attention.

    Notes
    -----
    :math:`\beta\sum_i\log\min(\sum_j p_{ij}, 1)` (Wu et al., 2016). The words j include the end
    symbol, as in the length penalty: what was looked at to decide that the translation ends
    counts. A word never looked at counts as the smallest number, so that no score is −∞.
    """
    least = torch.finfo(torch.float32).tiny
    return beta * coverage.float().clamp(least, 1.0).log().sum(-1)


def check_coverage(state: DecoderState, beta: float) -> None:
    """Refuse a coverage penalty for a model without coverage."""
    if state.coverage is None:
        raise OptionError(
            f"coverage_penalty is {beta}, but the model has not one attention to the source by "
            "which to tell what is covered; leave it 0"
        )
