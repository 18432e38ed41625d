"""The interface of engines that have a beam search of their own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from dragoman.decoding.constraints.term_automaton import TermAutomaton
from dragoman.decoding.options import SamplingOptions
from dragoman.kernels.cpu_search.task import ForbiddenTable
from dragoman.shapes import Float, Int

MOST_BEAMS = 16
"""Hypotheses of a sentence at most, in the search of an accelerator."""


class TermConstraints(NamedTuple):
    """Required terms of each sentence, and how many candidates each hypothesis proposes.

    `kinds` has the kind of each subword of the vocabulary, see `TermAutomaton`.
    """

    machines: Sequence[TermAutomaton]
    kinds: Int[np.ndarray, "vocabulary"]
    num_words: int


class SearchRequest(NamedTuple):
    """Settings of a search: what `find` is given beside the sentences.

    What stands behind `is_scored` only `CpuEngine` can do. Unrepeated translations say no phrase
    three times in a row; with `sampling` the hypotheses are samples; aligned ones tell what their
    words attended to.
    """

    num_beams: int
    num_best: int
    alpha: float
    banned_ids: tuple[int, ...]
    is_scored: bool
    is_unrepeated: bool = False
    forbidden: ForbiddenTable | None = None
    sampling: SamplingOptions | None = None
    required: TermConstraints | None = None
    is_aligned: bool = False

    @property
    def is_special(self) -> bool:
        """Whether there are constraints beyond the most probable tokens."""
        constraints = (self.forbidden, self.sampling, self.required)
        return self.is_unrepeated or any(each is not None for each in constraints)


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A finished hypothesis.

    Parameters
    ----------
    tokens : tuple[int, ...]
        Its subwords, without the end symbol.
    log_probability : float
        Of the subwords and the end symbol; NaN if nobody asked.
    score : float
        The log-probability divided by the length penalty, plus the coverage penalty.
    token_log_probabilities : tuple[float, ...]
        One for each subword and one for the end symbol; nothing if nobody asked.
    attention : Float[np.ndarray, "words sources"] | None
        What each subword gave to each of the source while it was produced, summed over layers and
        heads, end symbols left out; None if nobody asked, or the engine does not tell.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_log_probabilities: tuple[float, ...] = ()
    attention: Float[np.ndarray, "words sources"] | None = field(
        default=None, compare=False, repr=False
    )


def count_candidates(num_beams: int) -> int:
    """Count the candidates of a sentence in each step.

    Returns
    -------
    int
        Twice as many, so that enough live on even if some end; but one for greedy search.
    """
    return 2 * num_beams if num_beams > 1 else 1


@runtime_checkable
class SearchEngine(Protocol):
    """An engine that has a beam search of its own."""

    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        request: SearchRequest,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
        """Find the best translations of some sentences."""
        ...
