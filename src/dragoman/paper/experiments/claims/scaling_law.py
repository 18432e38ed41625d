"""Scaling laws: a power law with an irreducible loss, fitted by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

EXPONENTS = (0.02, 3.0, 0.002)
"""The grid of α: from, to, step."""

_FITTED = 3


@dataclass(frozen=True, kw_only=True)
class Law:
    r"""A fitted law :math:`L = L_\infty + a x^{-\alpha}`.

    Parameters
    ----------
    floor : float
        :math:`L_\infty`, what no size could go below.
    factor : float
        a.
    exponent : float
        α.
    low, high : float
        α within one standard error.
    deviation : float
        Of what was measured from the law, in nats.
    """

    floor: float
    factor: float
    exponent: float
    low: float
    high: float
    deviation: float

    def at(self, size: float) -> float:
        """Compute the loss it predicts."""
        return self.floor + self.factor * size**-self.exponent


def fit_law(sizes: Sequence[float], losses: Sequence[float]) -> Law:
    r"""Fit a power law with a floor by least squares.

    Notes
    -----
    For each α of a grid the other two follow from linear least squares; the α with the smallest
    sum S of squares is taken. Its uncertainty interval are all α with :math:`S(\alpha) \le S_{min}
    (1 + 1/(n-3))` with n different sizes: one standard error, if errors are normal and alike. With
    three sizes or fewer every law fits, and the whole grid is uncertain.
    """
    import numpy as np

    x, y = np.asarray(sizes, dtype=float), np.asarray(losses, dtype=float)
    # Normalise the sizes, so that no power of the grid overflows.
    middle = float(np.exp(np.log(x).mean()))
    grid = np.arange(*EXPONENTS)
    powers = (x / middle) ** -grid[:, None]
    floors, factors = _fit_lines(powers, y)
    errors = ((y - floors[:, None] - factors[:, None] * powers) ** 2).sum(1)
    best = int(errors.argmin())
    spare = len(set(sizes)) - _FITTED
    # Least squares in floats has a limited precision.
    limit = errors[best] * (1 + 1 / spare) + 1e-12 if spare > 0 else np.inf
    within = grid[errors <= limit]
    exponent = float(grid[best])
    return Law(
        floor=float(floors[best]),
        factor=float(factors[best]) * middle**exponent,
        exponent=exponent,
        low=float(within.min()),
        high=float(within.max()),
        deviation=float(np.sqrt(errors[best] / len(y))),
    )


def _fit_lines(x: "np.ndarray", y: "np.ndarray") -> tuple["np.ndarray", "np.ndarray"]:
    """Fit y = c + a·x with neither negative, for each row of x; return all c and all a."""
    import numpy as np

    centred = x - x.mean(1, keepdims=True)
    slopes = np.maximum(centred @ (y - y.mean()) / (centred**2).sum(1), 0.0)
    floors = y.mean() - slopes * x.mean(1)
    through_zero = (x @ y) / (x**2).sum(1)
    return np.maximum(floors, 0.0), np.where(floors < 0, through_zero, slopes)
