"""BLEU by bucket of sentence length."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.paper.report.result import spread
from dragoman.paper.training_runs.outcomes import Outcome


@dataclass(frozen=True, kw_only=True)
class Curve:
    """BLEU of one system by sentence length.

    Parameters
    ----------
    title : str
        What to call it.
    is_scheme : bool
        Whether it is a position scheme, and not a system.
    runs : tuple[Outcome, ...]
        One for each seed.
    scores : tuple[tuple[float, ...], ...]
        For each run, BLEU of each bucket.
    """

    title: str
    is_scheme: bool
    runs: tuple[Outcome, ...]
    scores: tuple[tuple[float, ...], ...]

    @property
    def means(self) -> list[float]:
        """Mean BLEU of each bucket over the seeds."""
        return [statistics.fmean(each) for each in zip(*self.scores, strict=True)]

    @property
    def deviations(self) -> list[float] | None:
        """Standard deviation of each bucket over the seeds; None for a single seed."""
        found = [spread(each)[1] for each in zip(*self.scores, strict=True)]
        return [each for each in found if each is not None] or None

    def fall(self, num_within: int) -> float:
        """Compute the loss of BLEU from the shortest lines to the longest seen in training."""
        return self.means[0] - self.means[num_within - 1]


def score_buckets(
    translations: Sequence[str], references: Sequence[str], num_buckets: int
) -> tuple[float, ...]:
    """Compute BLEU of each bucket of a test set."""
    from dragoman.evaluation.bleu import corpus_bleu

    size = len(references) // num_buckets
    parts = [slice(first, first + size) for first in range(0, size * num_buckets, size)]
    return tuple(corpus_bleu(translations[part], [references[part]]) for part in parts)
