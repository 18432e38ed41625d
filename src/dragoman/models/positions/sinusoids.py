"""Sinusoidal positions (section 3.5 of the paper), without PyTorch."""

import numpy as np

from dragoman.shapes import Float64


def sinusoids(
    first: int, count: int, model_dim: int, *, is_inclusive: bool = False
) -> Float64[np.ndarray, "count model_dim"]:
    r"""Compute the vectors of a range of positions.

    Parameters
    ----------
    first : int
        The first position, counted from 0.
    count : int
        How many positions.
    model_dim : int
        Their width; even.
    is_inclusive : bool
        Whether the slowest sinusoid is 10,000 times as slow as the fastest, as in Tensor2Tensor
        and Marian, and not a little less, as in the paper.

    Notes
    -----
    :math:`PE_{pos,2i}=\sin(pos/10000^{2i/d})` and :math:`PE_{pos,2i+1}=\cos(pos/10000^{2i/d})`, the
    exponents being :math:`2i/(d-2)` if inclusive. In double precision, so that far positions are
    exact.
    """
    positions = np.arange(first, first + count, dtype=np.float64)
    angles = positions[:, None] / wavelengths(model_dim, is_inclusive=is_inclusive)
    return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(count, model_dim)


def wavelengths(model_dim: int, *, is_inclusive: bool = False) -> Float64[np.ndarray, "pairs"]:
    """Compute the wavelength, divided by 2π, of each pair of sine and cosine."""
    whole = max(1, model_dim - 2) if is_inclusive else model_dim
    return 10_000 ** (np.arange(0, model_dim, 2, dtype=np.float64) / whole)
