"""Lexical translation probabilities on token ids, learnt from sentence pairs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dragoman.shapes import Float, Int

# Sentence pairs whose words are paired at once.
CHUNK_PAIRS = 5000

Ids = Int[np.ndarray, "tokens"]


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Lexical translation probabilities of target tokens, given source tokens.

    Parameters
    ----------
    sources, targets : Int[np.ndarray, "entries"]
        The words of each entry, sorted by source, then by target.
    probabilities : Float[np.ndarray, "entries"]
        Of the target word, given the source word.
    """

    sources: Int[np.ndarray, "entries"]
    targets: Int[np.ndarray, "entries"]
    probabilities: Float[np.ndarray, "entries"]

    def likeliest(self, num_sources: int, count: int) -> Int[np.ndarray, "sources count"]:
        """List the most probable translations of each source token."""
        order = np.lexsort((self.targets, -self.probabilities, self.sources))
        sources, targets = self.sources[order], self.targets[order]
        starts = np.searchsorted(sources, np.arange(num_sources))
        ranks = np.arange(len(sources)) - starts[sources]
        best = ranks < count
        table = np.full((num_sources, count), -1, dtype=np.int64)
        table[sources[best], ranks[best]] = targets[best]
        return table


def learn_lexicon(
    sources: Sequence[Ids], targets: Sequence[Ids], num_targets: int, *, num_iterations: int = 5
) -> Lexicon:
    r"""Learn lexical translation probabilities by IBM Model 1.

    Notes
    -----
    IBM Model 1 (Brown et al., 1993). Beginning with equal probabilities, each round shares every
    target word out among the source words of its sentence and counts what each got,

    .. math::
        c(e, f) = \sum_{\text{pairs}} \sum_{i, j:\, e_i = e,\, f_j = f}
            \frac{t(f \mid e)}{\sum_{i'} t(f \mid e_{i'})},
        \qquad t(f \mid e) = \frac{c(e, f)}{\sum_{f'} c(e, f')} .

    The likelihood never falls. All pairs of words of all sentences are held in memory, eight
    bytes each: some 700 megabytes for 100,000 pairs of thirty subwords a side.
    """
    chunks = range(0, len(sources), CHUNK_PAIRS)
    keys = np.zeros(0, dtype=np.int64)
    for start in chunks:
        found, _ = _pair_words(sources, targets, start, num_targets)
        keys = np.union1d(keys, found)
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for start in chunks:
        found, owners = _pair_words(sources, targets, start, num_targets)
        pairs.append((np.searchsorted(keys, found).astype(np.int32), owners))
    source_of = keys // num_targets
    probabilities = np.ones(len(keys))
    for _ in range(num_iterations):
        counts = np.zeros(len(keys))
        for places, owners in pairs:
            likely = probabilities[places]
            shares = likely / np.bincount(owners, weights=likely)[owners]
            counts += np.bincount(places, weights=shares, minlength=len(keys))
        totals = np.bincount(source_of, weights=counts)
        probabilities = counts / totals[source_of]
    return Lexicon(sources=source_of, targets=keys % num_targets, probabilities=probabilities)


def _pair_words(
    sources: Sequence[Ids], targets: Sequence[Ids], start: int, num_targets: int
) -> tuple[Int[np.ndarray, "pairs"], Int[np.ndarray, "pairs"]]:
    """List all pairs of a source and a target token that share a sentence pair."""
    keys, owners = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int32)]
    first = 0
    stop = start + CHUNK_PAIRS
    for source, target in zip(sources[start:stop], targets[start:stop], strict=True):
        keys.append((source[:, None] * num_targets + target).ravel())
        numbers = np.arange(first, first + len(target), dtype=np.int32)
        owners.append(np.broadcast_to(numbers, (len(source), len(target))).ravel())
        first += len(target)
    return np.concatenate(keys), np.concatenate(owners)
