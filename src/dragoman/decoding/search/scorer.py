"""From decoder states to log-probabilities of the next token."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from dragoman.kernels.cpu_search.task import AT_START, ForbiddenTable
from dragoman.shapes import Float, Int

IMPOSSIBLE = -torch.inf

_BITS = 1 / math.log(2)
# On a CPU: words whose largest score is found at once, and rows that stay in the cache together.
_BLOCK = 128
_ROWS = 8
PART_ROWS = 64
"""Hypotheses whose scores a CPU keeps at once: with 32,000 words 8 MB."""


@dataclass(frozen=True, kw_only=True)
class WordScores:
    """Logits of every token for each hypothesis.

    Parameters
    ----------
    logits : Float[Tensor, "sentences beams vocabulary"]
        Scores; −∞ for words that must not come.
    normaliser : Float[Tensor, "sentences beams 1"] | None
        The logarithm of the sum of their exponentials before any word was ruled out; None: nobody
        needs to know.
    """

    logits: Float[Tensor, "sentences beams vocabulary"]
    normaliser: Float[Tensor, "sentences beams 1"] | None

    def best(
        self, count: int
    ) -> tuple[Float[Tensor, "sentences beams best"], Int[Tensor, "sentences beams best"]]:
        """Find the most probable tokens of each hypothesis.

        Returns
        -------
        tuple[Float[Tensor, "sentences beams best"], Int[Tensor, "sentences beams best"]]
            Their log-probabilities in falling order, and the words. Without a normaliser they are
            plain scores, comparable only within a hypothesis.
        """
        scores, words = find_largest(self.logits, count)
        return self._normalise(scores), words

    def of(
        self, words: Int[Tensor, "sentences beams chosen"]
    ) -> Float[Tensor, "sentences beams chosen"]:
        """Compute the log-probabilities of some tokens."""
        return self._normalise(self.logits.gather(2, words))

    def _normalise(self, scores: Tensor) -> Tensor:
        return scores if self.normaliser is None else scores - self.normaliser


class ChunkedWordScores:
    """Logits of many hypotheses, computed chunk by chunk to bound memory.

    Parameters
    ----------
    score : Callable[[Tensor], WordScores]
        Scores some of them.
    hidden : Float[Tensor, "sentences beams model_dim"]
        What the decoder says of each.
    """

    def __init__(
        self,
        score: Callable[[Tensor], WordScores],
        hidden: Float[Tensor, "sentences beams model_dim"],
    ) -> None:
        self._score, self._shape = score, hidden.shape[:2]
        self._parts = hidden.flatten(0, 1).unsqueeze(0).split(PART_ROWS, dim=1)

    def best(
        self, count: int
    ) -> tuple[Float[Tensor, "sentences beams best"], Int[Tensor, "sentences beams best"]]:
        """Find the most probable tokens of each hypothesis."""
        found = [self._score(part).best(count) for part in self._parts]
        logs, words = (torch.cat(each, dim=1) for each in zip(*found, strict=True))
        return logs.view(*self._shape, -1), words.view(*self._shape, -1)

    def of(
        self, words: Int[Tensor, "sentences beams chosen"]
    ) -> Float[Tensor, "sentences beams chosen"]:
        """Compute the log-probabilities of some tokens."""
        asked = words.flatten(0, 1).unsqueeze(0).split(PART_ROWS, dim=1)
        found = [self._score(part).of(each) for part, each in zip(self._parts, asked, strict=True)]
        return torch.cat(found, dim=1).view(words.shape)


class ForbiddenWordTracker:
    """Automaton states of forbidden phrases, for the hypotheses of one search.

    Parameters
    ----------
    table : ForbiddenTable
        What each subword does.
    device : torch.device
        Where translations are searched for.
    """

    def __init__(self, table: ForbiddenTable, device: torch.device) -> None:
        self._table = [torch.from_numpy(each).to(device) for each in table]
        self._places: Tensor | None = None

    def rule_out(self, logits: Float[Tensor, "sentences beams vocabulary"]) -> None:
        """Mask tokens that would complete a forbidden phrase."""
        banned, closing, is_complete, ends_word = self._table[:4]
        if self._places is None:
            self._places = torch.full(logits.shape[:2], AT_START, device=logits.device)
        if len(banned):
            logits.index_fill_(2, banned, IMPOSSIBLE)
        if closing.size(1):
            logits.scatter_(2, closing[self._places], IMPOSSIBLE)
        is_closed = is_complete[self._places]
        if is_closed.any():
            logits[is_closed] = logits[is_closed].masked_fill(ends_word, IMPOSSIBLE)

    def follow(
        self, parents: Int[Tensor, "sentences beams"], words: Int[Tensor, "sentences beams"]
    ) -> None:
        """Advance the states by the chosen tokens."""
        assert self._places is not None
        known, targets, defaults, may_begin = self._table[4:]
        places = self._places.gather(1, parents)
        after = defaults[may_begin[places], words]
        if len(known):
            keys = places * defaults.size(1) + words
            found = torch.searchsorted(known, keys).clamp_(max=len(known) - 1)
            after = targets[found].where(known[found] == keys, after)
        self._places = after

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Drop all sentences but these."""
        assert self._places is not None
        self._places = self._places[sentences]


class Scorer:
    """An output layer with banned and forbidden tokens masked.

    Parameters
    ----------
    output : Callable[[Tensor], Tensor]
        From hidden states to a score for every word.
    banned_ids : tuple[int, ...]
        Subwords that must not occur.
    forbidden : ForbiddenWordTracker | None
        Words that must not occur however they are spelt; None: any may.
    is_normalised : bool
        Whether anybody needs probabilities; greedy search by itself does not.
    """

    def __init__(
        self,
        output: Callable[[Tensor], Tensor],
        *,
        banned_ids: tuple[int, ...] = (),
        forbidden: ForbiddenWordTracker | None = None,
        is_normalised: bool = True,
    ) -> None:
        self._output = output
        self._banned = banned_ids
        self._banned_ids: Tensor | None = None
        self._forbidden = forbidden
        self._is_normalised = is_normalised

    def score(self, hidden: Float[Tensor, "sentences beams model_dim"]) -> WordScores:
        """Score every next token of each hypothesis."""
        logits = self._output(hidden).float()
        normaliser = log_sum_exp(logits) if self._is_normalised else None
        if self._banned:
            if self._banned_ids is None:
                self._banned_ids = torch.tensor(self._banned, device=logits.device)
            logits.index_fill_(2, self._banned_ids, IMPOSSIBLE)
        if self._forbidden is not None:
            self._forbidden.rule_out(logits)
        return WordScores(logits=logits, normaliser=normaliser)

    def score_in_chunks(
        self, hidden: Float[Tensor, "sentences beams model_dim"]
    ) -> WordScores | ChunkedWordScores:
        """Score every next token, chunk by chunk if the logits are large.

        Returns
        -------
        WordScores | ChunkedWordScores
            The scores; on a CPU those of many hypotheses are computed when they are asked for.
        """
        is_whole = self._forbidden is not None or getattr(self._output, "knows_rows", False)
        if is_whole or hidden.device.type != "cpu" or hidden.shape[:2].numel() <= PART_ROWS:
            return self.score(hidden)
        return ChunkedWordScores(self.score, hidden)

    def follow(
        self, parents: Int[Tensor, "sentences beams"], words: Int[Tensor, "sentences beams"]
    ) -> None:
        """Advance the states of forbidden phrases by the chosen tokens."""
        if self._forbidden is not None:
            self._forbidden.follow(parents, words)

    def keep(self, sentences: Int[Tensor, "kept"]) -> None:
        """Drop all sentences but these."""
        if self._forbidden is not None:
            self._forbidden.keep(sentences)


def log_sum_exp(
    logits: Float[Tensor, "sentences beams vocabulary"],
) -> Float[Tensor, "sentences beams 1"]:
    """Compute the normaliser that turns logits into log-probabilities.

    Notes
    -----
    Powers of two cost half of what those of e do on a CPU, and a few rows at a time stay in its
    cache: together less than half the time of `torch.logsumexp` for 32,000 words.
    """
    rows = logits.flatten(0, 1)
    parts = rows.split(_ROWS) if rows.device.type == "cpu" else (rows,)
    sums = [_log_sum_exp(part) for part in parts]
    return (sums[0] if len(sums) == 1 else torch.cat(sums)).view(*logits.shape[:2], 1)


def _log_sum_exp(rows: Tensor) -> Tensor:
    largest = rows.amax(1, keepdim=True)
    powers = torch.add(largest * -_BITS, rows, alpha=_BITS).exp2_()
    return powers.sum(1, keepdim=True).log_().add_(largest)


def find_largest(
    logits: Float[Tensor, "sentences beams vocabulary"], count: int
) -> tuple[Float[Tensor, "sentences beams best"], Int[Tensor, "sentences beams best"]]:
    """Find the largest scores of each hypothesis.

    Notes
    -----
    The k largest lie in the k blocks with the largest maxima. Maxima of blocks are found with all
    of a CPU's lanes, which `topk` does not use: it takes a quarter of the time for 32,000 words.
    """
    size = logits.size(2)
    if logits.device.type != "cpu" or size < 4 * count * _BLOCK:
        scores, words = logits.topk(min(count, size))
        return scores, words
    rows = logits.flatten(0, 1)
    num_blocks = size // _BLOCK
    blocks = rows[:, : num_blocks * _BLOCK].unflatten(1, (num_blocks, _BLOCK))
    chosen = blocks.amax(2).topk(count).indices
    values = blocks.gather(1, chosen.unsqueeze(2).expand(-1, -1, _BLOCK)).flatten(1)
    if num_blocks * _BLOCK < size:
        # The rest of the vocabulary is one more block, always chosen.
        values = torch.cat([values, rows[:, num_blocks * _BLOCK :]], dim=1)
        chosen = torch.cat([chosen, chosen.new_full((len(rows), 1), num_blocks)], dim=1)
    scores, places = values.topk(count)
    words = chosen.gather(1, places // _BLOCK) * _BLOCK + places % _BLOCK
    return scores.view(*logits.shape[:2], count), words.view(*logits.shape[:2], count)
