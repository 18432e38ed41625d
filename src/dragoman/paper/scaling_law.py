"""The law by which loss falls with size: a power with a floor, fitted by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

EXPONENTS = (0.02, 3.0, 0.005)
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
        """Compute the loss it predicts.

        Parameters
        ----------
        size : float
            x.

        Returns
        -------
        float
            In nats.
        """
        return self.floor + self.factor * size**-self.exponent


def fit_law(sizes: Sequence[float], losses: Sequence[float]) -> Law:
    r"""Fit a power law with a floor by least squares.

    Parameters
    ----------
    sizes : Sequence[float]
        x, positive.
    losses : Sequence[float]
        What was measured at them.

    Returns
    -------
    Law
        The best law whose floor and factor are not negative.

    Notes
    -----
    For each α of a grid the other two follow from linear least squares; the α with the smallest
    sum S of squares is taken. Its uncertainty are all α with :math:`S(\alpha) \le S_{min}
    (1 + 1/(n-3))` with n different sizes: one standard error, if errors are normal and alike. With
    three sizes or fewer every law fits, and the whole grid is uncertain.
    """
    import numpy as np

    x, y = np.asarray(sizes, dtype=float), np.asarray(losses, dtype=float)
    middle = float(np.exp(np.log(x).mean()))
    grid = np.arange(*EXPONENTS)
    fits = [_fit_line((x / middle) ** -alpha, y) for alpha in grid]
    errors = np.array([error for _, _, error in fits])
    best = int(errors.argmin())
    spare = len(set(sizes)) - _FITTED
    # Least squares of numbers near one are exact only so far.
    limit = errors[best] * (1 + 1 / spare) + 1e-12 if spare > 0 else np.inf
    within = grid[errors <= limit]
    floor, factor, _ = fits[best]
    exponent = float(grid[best])
    return Law(
        floor=floor,
        factor=factor * middle**exponent,
        exponent=exponent,
        low=float(within.min()),
        high=float(within.max()),
        deviation=float(np.sqrt(errors[best] / len(y))),
    )


def _fit_line(x: "np.ndarray", y: "np.ndarray") -> tuple[float, float, float]:
    """Fit y = c + a·x with neither negative; return c, a and the sum of squares."""
    spread_of_x = float(((x - x.mean()) ** 2).sum())
    slope = float(((x - x.mean()) * (y - y.mean())).sum()) / spread_of_x if spread_of_x else 0.0
    slope = max(slope, 0.0)
    floor = float(y.mean()) - slope * float(x.mean())
    if floor < 0:
        floor, slope = 0.0, float(x @ y) / float(x @ x)
    return floor, slope, float(((y - floor - slope * x) ** 2).sum())
