"""Fit the probability that a translation is good, and measure how far it can be relied on."""

from collections.abc import Sequence

import numpy as np

from dragoman.decoding.confidence import (
    FEATURES,
    Bin,
    Calibration,
    Evidence,
    Regression,
    Reliability,
    Weighed,
    bound_deviation,
)
from dragoman.decoding.translation import Translation
from dragoman.errors import DataError
from dragoman.evaluation.bleu import build_metric
from dragoman.shapes import Bool, Float, Int

GOOD_CHRF = 60.0
"""From which sentence chrF a translation counts as good. Of two people's translations of the same
sentence of Tatoeba one has at least 60 against the other in 57 to 67 of 100 cases, depending on the
languages; the median is 64 to 69 (``benchmarks/confidence.py``). So a good one is as near to the
reference as most of what people write."""

FEWEST_LINES = 200
FEWEST_OF_EACH = 20
NUM_FOLDS = 5
NUM_BINS = 10
DIGITS = 6
TINY = 10.0**-DIGITS

EXPECTED: dict[str, float] = {"repetition": -0.5, "suspicion": -2.0}
"""Weights expected before any line is seen, of what is too rare to be learnt from a few hundred:
log-odds for each repetition in a row, and for what had to be searched for again."""

MOST_STEPS, PRECISION = 100, 1e-9


def fit_confidence(
    translations: Sequence[Translation],
    references: Sequence[Sequence[str]],
    source: str,
) -> Calibration:
    """Fit the confidence in a model's translations on lines with references.

    Parameters
    ----------
    translations : Sequence[Translation]
        The model's, with log-probabilities.
    references : Sequence[Sequence[str]]
        For each file of references its lines.
    source : str
        What these lines are, in words.

    Notes
    -----
    Lines that were translated in several parts are left out, as it is not known which of them is
    good. Reliability is that of five regressions, each on the lines that the other four fifths were
    fitted on; what is kept is fitted on all.
    """
    lines = [row for row, each in enumerate(translations) if len(each.evidence) == 1]
    evidence = [translations[row].evidence[0] for row in lines]
    metric = build_metric("chrf")
    scores = [
        metric.sentence_score(each.text, [some[row] for some in references]).score
        for row, each in zip(lines, evidence, strict=True)
    ]
    is_good = np.array(scores, np.float64) >= GOOD_CHRF
    check_enough(len(lines), int(is_good.sum()), source)
    rows = np.arange(len(lines))
    predicted = np.zeros(len(lines))
    for fold in range(NUM_FOLDS):
        is_held_out = rows % NUM_FOLDS == fold
        fitted = [evidence[row] for row in rows[~is_held_out]]
        regression = fit_regression(fitted, is_good[~is_held_out])
        for row in rows[is_held_out]:
            predicted[row] = regression.predict(evidence[row])
    return Calibration(
        good_chrf=GOOD_CHRF,
        fitted_on=source,
        num_lines=len(lines),
        regression=fit_regression(evidence, is_good),
        reliability=measure_reliability(predicted, is_good),
    )


def check_enough(num_lines: int, num_good: int, source: str) -> None:
    """Refuse lines that are too few, or nearly all good or all bad."""
    if num_lines < FEWEST_LINES or not FEWEST_OF_EACH <= num_good <= num_lines - FEWEST_OF_EACH:
        raise DataError(
            f"{source}: {num_good:,} good translations of {num_lines:,} single sentences, but "
            f"confidence is calibrated on {FEWEST_LINES} or more, with {FEWEST_OF_EACH} good and "
            f"{FEWEST_OF_EACH} others among them; give more lines"
        )


def fit_regression(evidence: Sequence[Evidence], is_good: Bool[np.ndarray, "lines"]) -> Regression:
    """Fit a logistic regression whose weights have the signs that `FEATURES` says.

    Notes
    -----
    Where a weight would have the other sign, its feature is left out. That costs nothing on text
    like that which it is fitted on, and much less is claimed of other text: a corpus of short
    sentences cannot teach that long ones are better.
    """
    length_ratio = float(np.median([each.length_ratio for each in evidence]))
    values = np.array([each.measure(length_ratio) for each in evidence], np.float64)
    scales = []
    for name, column in zip(FEATURES, values.T, strict=True):
        mean, spread = float(column.mean()), float(column.std())
        is_rare = name in EXPECTED or spread < TINY
        scales.append(Weighed(0.0, 1.0, 0.0) if is_rare else Weighed(mean, spread, 0.0))
    deviations = [
        [bound_deviation(value, each) for value, each in zip(row, scales, strict=True)]
        for row in values.tolist()
    ]
    design = np.column_stack([np.ones(len(values)), np.array(deviations)])
    weights = fit_signed(design, is_good, np.array([0, *FEATURES.values()]))
    named = zip(FEATURES, scales, weights[1:].tolist(), strict=True)
    return Regression(
        length_ratio=round(length_ratio, DIGITS),
        intercept=round(float(weights[0]), DIGITS),
        features={
            name: Weighed(
                round(each.mean, DIGITS), round(each.spread, DIGITS), round(weight, DIGITS)
            )
            for name, each, weight in named
        },
    )


def fit_signed(
    design: Float[np.ndarray, "lines features"],
    is_good: Bool[np.ndarray, "lines"],
    signs: Int[np.ndarray, "features"],
) -> Float[np.ndarray, "features"]:
    """Leave features out until the weights of all others have the right sign."""
    expected = np.array([0.0, *(EXPECTED.get(name, 0.0) for name in FEATURES)])
    kept = np.arange(design.shape[1])
    while True:
        weights = np.zeros(design.shape[1])
        weights[kept] = fit_logistic(design[:, kept], is_good, expected[kept])
        wrong = weights * signs
        if (wrong >= 0).all():
            return weights
        kept = kept[kept != wrong.argmin()]


def fit_logistic(
    design: Float[np.ndarray, "lines features"],
    is_good: Bool[np.ndarray, "lines"],
    expected: Float[np.ndarray, "features"],
) -> Float[np.ndarray, "features"]:
    r"""Minimise :math:`-\sum \log p + \frac12 |w - w_0|^2` by Newton's method.

    Notes
    -----
    The first weight is the intercept, which is free.
    """
    free = np.array([0.0, *[1.0] * (design.shape[1] - 1)])
    weights = expected.copy()
    for _ in range(MOST_STEPS):
        probabilities = (1 + np.tanh(design @ weights / 2)) / 2
        slope = design.T @ (probabilities - is_good) + free * (weights - expected)
        spread = probabilities * (1 - probabilities)
        bend = (design * spread[:, None]).T @ design + np.diag(free)
        step = np.linalg.solve(bend, slope)
        weights = weights - step
        if np.abs(step).max() < PRECISION:
            break
    return weights


def measure_reliability(
    predicted: Float[np.ndarray, "lines"], is_good: Bool[np.ndarray, "lines"]
) -> Reliability:
    """Compare probabilities with what was, on lines that they were not fitted on."""
    bins, difference = [], 0.0
    places = np.minimum((predicted * NUM_BINS).astype(int), NUM_BINS - 1)
    for place in range(NUM_BINS):
        is_there = places == place
        if is_there.any():
            one, other = float(predicted[is_there].mean()), float(is_good[is_there].mean())
            difference += abs(one - other) * is_there.sum()
            bins.append(Bin(round(one, DIGITS), round(other, DIGITS), int(is_there.sum())))
    return Reliability(
        share_good=round(float(is_good.mean()), DIGITS),
        brier=round(float(((predicted - is_good) ** 2).mean()), DIGITS),
        calibration_error=round(float(difference) / len(is_good), DIGITS),
        ranking=round(rank_good(predicted, is_good), DIGITS),
        bins=tuple(bins),
    )


def rank_good(predicted: Float[np.ndarray, "lines"], is_good: Bool[np.ndarray, "lines"]) -> float:
    """Compute the area under the ROC curve; one half where all lines are good, or none."""
    _, places, counts = np.unique(predicted, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    num_good = int(is_good.sum())
    num_pairs = num_good * (len(is_good) - num_good)
    if not num_pairs:
        return 0.5
    return float((ranks[is_good].sum() - num_good * (num_good + 1) / 2) / num_pairs)
