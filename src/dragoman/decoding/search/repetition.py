"""Block phrases that would be repeated for the third time in a row."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from dragoman.data.batches import Sequences
from dragoman.kernels.cpu_search.task import LONGEST_PHRASE
from dragoman.models.interface import DecoderState, SearchedModel
from dragoman.shapes import Float, Int


@dataclass(frozen=True, kw_only=True)
class StateWithHistory:
    """A decoder state and the tokens read so far.

    Parameters
    ----------
    state : DecoderState
        The state.
    past : Int[Tensor, "sentences beams length"]
        The words of each hypothesis, the start symbol first.
    """

    state: DecoderState
    past: Int[Tensor, "sentences beams length"]

    @property
    def coverage(self) -> Float[Tensor, "sentences beams source"] | None:
        """Return the coverage of the wrapped state, if it has one."""
        return self.state.coverage

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "StateWithHistory":
        """Let each hypothesis continue another of the same sentence."""
        places = beams.unsqueeze(-1).expand(-1, -1, self.past.size(2))
        return replace(self, state=self.state.reorder(beams), past=self.past.gather(1, places))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "StateWithHistory":
        """Drop all sentences but these."""
        return replace(self, state=self.state.keep(sentences), past=self.past[sentences])


class BlockedOutput:
    """An output layer that masks tokens completing a third repetition.

    Parameters
    ----------
    output : Callable[[Tensor], Tensor]
        The output layer.
    num_forced : int
        First words of a translation, of which none is ruled out.
    """

    knows_rows = True
    """Whose hidden states it is given: it cannot score some hypotheses alone."""

    def __init__(self, output: Callable[[Tensor], Tensor], num_forced: int = 0) -> None:
        self._output = output
        self._num_forced = num_forced
        self.past: Tensor | None = None

    def __call__(
        self, hidden: Float[Tensor, "sentences beams model_dim"]
    ) -> Float[Tensor, "sentences beams vocabulary"]:
        """Compute logits with blocked tokens masked."""
        logits = self._output(hidden)
        assert self.past is not None
        past = self.past[:, :, 1:]
        if past.size(2) < self._num_forced:
            return logits
        for period in range(1, min(LONGEST_PHRASE, (past.size(2) + 1) // 3) + 1):
            said = past[:, :, past.size(2) - 2 * period + 1 :]
            before = past[:, :, past.size(2) - 3 * period + 1 : past.size(2) - period]
            is_third = (said == before).all(-1, keepdim=True)
            words = past[:, :, past.size(2) - period, None]
            scores = logits.gather(2, words)
            logits = logits.scatter(2, words, scores.masked_fill(is_third, -torch.inf))
        return logits


class RepetitionBlocker:
    """A model that never repeats a phrase three times in a row.

    Parameters
    ----------
    model : SearchedModel
        The model that might.
    num_forced : int
        First words of a translation that are said whatever they are.

    Notes
    -----
    Of the third time all but the last subword may be said, since only then is it one: after “the
    the” there is no third “the”, after “a b a b a” no “b”. Phrases have at most 32 subwords. The
    rest is the model's own, and what is ruled out is ruled out before probabilities are made.
    """

    def __init__(self, model: SearchedModel, num_forced: int = 0) -> None:
        self._model = model
        self.output = BlockedOutput(model.output, num_forced)

    def encode(self, source: Sequences) -> Any:  # noqa: ANN401
        """Encode the source sentences."""
        return self._model.encode(source)

    def start(self, memory: Any, capacity: int) -> StateWithHistory:  # noqa: ANN401
        """Start one hypothesis for each sentence."""
        state = self._model.start(memory, capacity)
        return StateWithHistory(state=state, past=torch.empty(0, 1, 0, dtype=torch.int64))

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: StateWithHistory
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], StateWithHistory]:
        """Feed one token of each hypothesis to the decoder."""
        hidden, inner = self._model.step(tokens, state.state)
        newest = tokens.unsqueeze(-1)
        past = torch.cat([state.past, newest], dim=2) if state.past.size(2) else newest
        self.output.past = past
        return hidden, StateWithHistory(state=inner, past=past)
