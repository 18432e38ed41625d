"""Hypotheses of a search: back-pointers of the living, and the best finished ones."""

from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.decoding.engines.search_engine import Hypothesis
from dragoman.decoding.search.candidates import Candidates
from dragoman.decoding.search.length_penalty import length_penalty
from dragoman.decoding.search.scorer import IMPOSSIBLE
from dragoman.shapes import Float, Int


@dataclass(kw_only=True)
class History:
    """Tokens and back-pointers of each search step.

    Parameters
    ----------
    words : Int[Tensor, "sentences steps beams"]
        The words.
    parents : Int[Tensor, "sentences steps beams"]
        Which hypothesis of the step before each continues.
    logs : Float[Tensor, "sentences steps beams"]
        The log-probability of each hypothesis up to there.

    Notes
    -----
    Words are written once and never copied from beam to beam: a translation is read from its end
    to its beginning when it is finished.
    """

    words: Int[Tensor, "sentences steps beams"]
    parents: Int[Tensor, "sentences steps beams"]
    logs: Float[Tensor, "sentences steps beams"]

    @staticmethod
    def begin(num_sentences: int, capacity: int, num_beams: int, device: torch.device) -> "History":
        """Allocate room for a search."""
        shape = (num_sentences, capacity, num_beams)
        return History(
            words=torch.zeros(shape, dtype=torch.int64, device=device),
            parents=torch.zeros(shape, dtype=torch.int64, device=device),
            logs=torch.zeros(shape, device=device),
        )

    def add(self, alive: Candidates, length: int) -> None:
        """Append one step."""
        count = alive.words.size(1)
        self.words[:, length, :count] = alive.words
        self.parents[:, length, :count] = alive.parents
        self.logs[:, length, :count] = alive.log_probabilities

    def rows(self, sentences: Int[Tensor, "kept"]) -> "History":
        """Select some sentences."""
        return History(
            words=self.words[sentences],
            parents=self.parents[sentences],
            logs=self.logs[sentences],
        )


@dataclass(kw_only=True)
class Finished:
    """The best finished hypotheses of each sentence so far.

    Parameters
    ----------
    scores : Float[Tensor, "sentences best"]
        In falling order.
    logs : Float[Tensor, "sentences best"]
        Their log-probabilities.
    lengths : Int[Tensor, "sentences best"]
        Their subwords, without the end symbol.
    beams : Int[Tensor, "sentences best"]
        Which hypothesis of that length each is.
    """

    scores: Float[Tensor, "sentences best"]
    logs: Float[Tensor, "sentences best"]
    lengths: Int[Tensor, "sentences best"]
    beams: Int[Tensor, "sentences best"]

    @staticmethod
    def begin(num_sentences: int, num_best: int, device: torch.device) -> "Finished":
        """Begin with no finished hypotheses."""
        scores = torch.full((num_sentences, num_best), IMPOSSIBLE, device=device)
        none = torch.zeros((num_sentences, num_best), dtype=torch.int64, device=device)
        return Finished(scores=scores, logs=scores, lengths=none, beams=none)

    def add(
        self,
        ended: Candidates,
        length: int,
        alpha: float,
        neglect: Float[Tensor, "sentences parents"] | None,
    ) -> None:
        """Insert hypotheses that end, keeping the n best."""
        scores = ended.log_probabilities / length_penalty(length + 1, alpha)
        if neglect is not None:
            scores = scores + neglect.gather(1, ended.parents)
        both = torch.cat([self.scores, scores], dim=1)
        self.scores, best = both.topk(self.scores.size(1))
        self.logs = torch.cat([self.logs, ended.log_probabilities], dim=1).gather(1, best)
        self.beams = torch.cat([self.beams, ended.parents], dim=1).gather(1, best)
        is_new = best >= self.lengths.size(1)
        old = self.lengths.gather(1, best.clamp(max=self.lengths.size(1) - 1))
        self.lengths = old.masked_fill(is_new, length)

    def rows(self, sentences: Int[Tensor, "kept"]) -> "Finished":
        """Select some sentences."""
        return Finished(
            scores=self.scores[sentences],
            logs=self.logs[sentences],
            lengths=self.lengths[sentences],
            beams=self.beams[sentences],
        )


def trace_back(
    finished: Finished, history: History, length: int, is_scored: bool
) -> list[list[Hypothesis]]:
    """Follow back-pointers from the end of each finished hypothesis."""
    ends = zip(
        *(each.tolist() for each in (finished.scores, finished.logs, finished.lengths,
                                     finished.beams)),
        strict=True,
    )  # fmt: skip
    steps = zip(
        *(each[:, :length].tolist() for each in (history.words, history.parents, history.logs)),
        strict=True,
    )
    return [
        [
            _read(past, score, log, num_words, beam, is_scored)
            for score, log, num_words, beam in zip(*row, strict=True)
            if score > IMPOSSIBLE
        ]
        for row, past in zip(ends, steps, strict=True)
    ]


def _read(
    past: tuple[list[list[int]], list[list[int]], list[list[float]]],
    score: float,
    log: float,
    num_words: int,
    beam: int,
    is_scored: bool,
) -> Hypothesis:
    """Follow the back-pointers of one hypothesis."""
    words, parents, logs = past
    tokens, sums = [], [log]
    for step in range(num_words - 1, -1, -1):
        tokens.append(words[step][beam])
        sums.append(logs[step][beam])
        beam = parents[step][beam]
    if not is_scored:
        return Hypothesis(tokens=tuple(tokens[::-1]), log_probability=torch.nan, score=torch.nan)
    each = [later - sooner for later, sooner in zip(sums, [*sums[1:], 0.0], strict=True)]
    return Hypothesis(
        tokens=tuple(tokens[::-1]),
        log_probability=log,
        score=score,
        token_log_probabilities=tuple(each[::-1]),
    )
