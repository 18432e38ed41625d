"""The length penalty (Wu et al., 2016)."""

from typing import Any


def length_penalty(lengths: Any, alpha: float) -> Any:  # noqa: ANN401
    r"""Compute the divisor of log-probabilities, ((5 + length) / 6)^α.

    Notes
    -----
    :math:`((5+|Y|)/6)^\alpha` (Wu et al., 2016), the paper's with α = 0.6.
    """
    return ((5 + lengths) / 6) ** alpha
