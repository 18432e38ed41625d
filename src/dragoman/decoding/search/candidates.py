"""Choose which candidates extend the living hypotheses."""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from dragoman.decoding.engines.search_engine import count_candidates
from dragoman.decoding.search.scorer import IMPOSSIBLE, ChunkedWordScores, WordScores
from dragoman.shapes import Bool, Float, Int


class Candidates(NamedTuple):
    """Extensions of a sentence's hypotheses; a score of −∞ is none."""

    log_probabilities: Float[Tensor, "sentences candidates"]
    words: Int[Tensor, "sentences candidates"]
    parents: Int[Tensor, "sentences candidates"]

    def settled(self, num_parents: int) -> "Candidates":
        """Reorder so that each keeps its parent's row where possible.

        Returns
        -------
        Candidates
            The same in another order. Those in a parent's place need not be moved there.
        """
        if num_parents == 1 or self.parents.size(1) != num_parents:
            return self
        wants = self.parents.unsqueeze(2) == torch.arange(num_parents, device=self.parents.device)
        stays = wants & (wants.cumsum(1) == 1)
        is_taken = stays.any(1)
        movers = stays.any(2).byte().argsort(stable=True, dim=1)
        places = (is_taken.logical_not().cumsum(1) - 1).clamp_(min=0)
        order = movers.gather(1, places).where(~is_taken, stays.byte().argmax(1))
        return Candidates(*(each.gather(1, order) for each in self))

    def without(self, sentences: Bool[Tensor, "sentences"]) -> "Candidates":
        """Mask those of some sentences."""
        logs = self.log_probabilities.masked_fill(sentences[:, None], IMPOSSIBLE)
        return self._replace(log_probabilities=logs)


class Extensions(NamedTuple):
    """Extensions that end a translation, and those that live on."""

    ended: Candidates
    alive: Candidates


class StepContext(NamedTuple):
    """The state of a search step: log-probabilities, limits, length and forced tokens."""

    alive: Float[Tensor, "sentences beams"]
    length: int
    limits: Int[Tensor, "sentences"]
    forced: Int[Tensor, "sentences"] | None


@runtime_checkable
class Chooser(Protocol):
    """Chooses extensions: by beam search, by sampling, or under required terms."""

    @property
    def num_beams(self) -> int:
        """The largest number of hypotheses of a sentence."""
        ...

    def choose(self, scores: WordScores, context: StepContext) -> Extensions:
        """Extend hypotheses by one token."""
        ...

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Drop all sentences but these."""
        ...


class BeamChooser:
    """Plain beam search; greedy search with one beam.

    Parameters
    ----------
    num_beams : int
        Hypotheses of a sentence.
    eos_id : int
        The end symbol.

    Notes
    -----
    Of the 2·beam best extensions those that end compete with the finished, and the beam best of
    the others live on. A beam of one looks at the best extension alone.
    """

    def __init__(self, num_beams: int, eos_id: int) -> None:
        self.num_beams = num_beams
        self._eos_id = eos_id

    def choose(self, scores: WordScores | ChunkedWordScores, context: StepContext) -> Extensions:
        """Extend hypotheses by their most probable tokens."""
        count = count_candidates(self.num_beams)
        logs, words = find_best(scores, count, context.forced)
        totals = (logs + context.alive.unsqueeze(2)).flatten(1)
        num_words, words = words.size(2), words.flatten(1)
        if totals.size(1) == 1:
            parents = torch.zeros_like(words)
        else:
            totals, places = totals.topk(min(count, totals.size(1)))
            words, parents = words.gather(1, places), places // num_words
        is_end = words == self._eos_id
        ended = Candidates(totals.where(is_end, IMPOSSIBLE), words, parents)
        going_on = totals.masked_fill(is_end, IMPOSSIBLE)
        if totals.size(1) == 1:
            return Extensions(ended, Candidates(going_on, words, parents))
        logs, best = going_on.topk(min(self.num_beams, totals.size(1)))
        alive = Candidates(logs, words.gather(1, best), parents.gather(1, best))
        return Extensions(ended, alive.settled(context.alive.size(1)))

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Do nothing: there is no state per sentence."""


def find_best(
    scores: WordScores | ChunkedWordScores, count: int, forced: Int[Tensor, "sentences"] | None
) -> tuple[Float[Tensor, "sentences beams best"], Int[Tensor, "sentences beams best"]]:
    """Find the most probable tokens of each hypothesis, or the forced one.

    Parameters
    ----------
    scores : WordScores | ChunkedWordScores
        Of all words.
    count : int
        How many.
    forced : Int[Tensor, "sentences"] | None
        The only word that may follow in each sentence, −1 where any may; None: any in all.
    """
    logs, words = scores.best(count)
    if forced is None:
        return logs, words
    is_forced = (forced >= 0)[:, None, None]
    only = forced.clamp(min=0)[:, None, None].expand(-1, words.size(1), 1)
    logs = logs.masked_fill(is_forced, IMPOSSIBLE)
    logs[:, :, :1] = scores.of(only).where(is_forced, logs[:, :, :1])
    words = words.where(~is_forced, only)
    return logs, words
