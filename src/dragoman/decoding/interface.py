"""What an engine with a search of its own is asked, and what it finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

MOST_BEAMS = 16
"""Hypotheses of a sentence at most."""


class Asking(NamedTuple):
    """A search for translations: what `find` is asked for beside the sentences.

    Unrepeated translations say no phrase three times in a row; only `CpuEngine` finds them.
    """

    num_beams: int
    num_best: int
    alpha: float
    banned_ids: tuple[int, ...]
    is_scored: bool
    is_unrepeated: bool = False


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A finished translation.

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
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    token_log_probabilities: tuple[float, ...] = ()


@runtime_checkable
class FindingEngine(Protocol):
    """A model that searches by itself, where nothing is asked but the most probable words."""

    def find(
        self,
        sources: Sequence[Sequence[int]],
        limits: Sequence[int],
        asking: Asking,
        prefixes: Sequence[Sequence[int]] = (),
    ) -> list[list[Hypothesis]]:
        """Find the best translations of some sentences."""
        ...
