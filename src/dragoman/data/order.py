"""The shuffled order of a pass, with mixing weights and temperature for several corpora."""

from collections.abc import Sequence

import numpy as np

from dragoman.shapes import Int


def draw_order(
    group_ends: Sequence[int], weights: Sequence[float] | None, *, seed: int, epoch: int
) -> Int[np.ndarray, "rows"]:
    """Draw the order of one pass.

    Parameters
    ----------
    group_ends : Sequence[int]
        Where each corpus ends among the pairs; the last is their number.
    weights : Sequence[float] | None
        How often the pairs of each corpus are seen in a pass; None: all of them once.
    seed : int
        The run's seed.
    epoch : int
        The pass. Seed and pass alone decide the order, so it can be drawn again to resume.

    Notes
    -----
    A weight of 2.5 is every pair twice and a fresh random half of them once more. Then all are
    shuffled together: any order is as likely as any other.
    """
    random = np.random.default_rng([seed, epoch])
    if weights is None:
        group_ends, weights = group_ends[-1:], (1.0,)
    parts = []
    starts = (0, *group_ends[:-1])
    for start, end, weight in zip(starts, group_ends, weights, strict=True):
        pairs = np.arange(start, end, dtype=np.int32)
        parts += [pairs] * int(weight)
        num_more = count_seen(end - start, weight) - int(weight) * len(pairs)
        if num_more:
            parts.append(random.permutation(pairs)[:num_more])
    order = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])
    random.shuffle(order)
    return order


def mixing_weights(counts: Sequence[int], temperature: float) -> tuple[float, ...]:
    """Compute mixing weights of corpora by temperature: small ones are oversampled.

    Parameters
    ----------
    counts : Sequence[int]
        Pairs of each corpus.
    temperature : float
        T, at least 1: 1 leaves the corpora as they are, and the larger it is, the more alike are
        their shares.

    Notes
    -----
    Of the n₁ + n₂ + … pairs that a pass has, as many as there are, corpus i has a share that is
    proportional to nᵢ^(1/T) (Arivazhagan et al. 2019).
    """
    if temperature == 1:
        return (1.0,) * len(counts)
    shares = np.array(counts, dtype=np.float64)
    shares[shares > 0] **= 1 / temperature
    seen = sum(counts) * shares / max(1.0, shares.sum())
    return tuple((seen / np.maximum(1, counts)).tolist())


def count_seen(num_pairs: int, weight: float) -> int:
    """Count the pairs of a corpus in one pass, repetitions included."""
    return round(num_pairs * weight)
