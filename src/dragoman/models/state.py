"""Decoder states of fixed size, as plain tensors."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from dragoman.shapes import Bool, Float, Int

COVERAGE = "coverage"


@dataclass(frozen=True, kw_only=True)
class HypothesisState:
    """Decoder state of all families whose memory does not grow with the translation.

    Parameters
    ----------
    hypotheses : Mapping[str, Tensor]
        What belongs to a hypothesis; each tensor is [sentences, beams, …].
    sentences : Mapping[str, Tensor]
        What the hypotheses of a sentence share; each tensor is [sentences, …].
    length : int
        Tokens read so far.
    """

    hypotheses: Mapping[str, Tensor]
    sentences: Mapping[str, Tensor] = field(default_factory=dict)
    length: int = 0

    @property
    def coverage(self) -> Float[Tensor, "sentences beams source"] | None:
        """How much attention each source word has had in all; None: the family cannot tell."""
        return self.hypotheses.get(COVERAGE)

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "HypothesisState":
        """Let each hypothesis continue another of the same sentence."""
        rows = torch.arange(len(beams), device=beams.device)[:, None]
        chosen = {name: each[rows, beams] for name, each in self.hypotheses.items()}
        return replace(self, hypotheses=chosen)

    def keep(self, sentences: Int[Tensor, "kept"]) -> "HypothesisState":
        """Drop all sentences but these."""
        return replace(
            self,
            hypotheses={name: each[sentences] for name, each in self.hypotheses.items()},
            sentences={name: each[sentences] for name, each in self.sentences.items()},
        )

    def after(self, **hypotheses: Tensor) -> "HypothesisState":
        """Return the state after one more token."""
        changed = {**self.hypotheses, **hypotheses}
        return replace(self, hypotheses=changed, length=self.length + 1)


def uncovered(is_token: Bool[Tensor, "sentences source"]) -> Float[Tensor, "sentences 1 source"]:
    """Make zeros that accumulate the attention of each source token."""
    return (~is_token).to(torch.get_default_dtype()).unsqueeze(1)


def rows_of_beams(beams: Int[Tensor, "sentences beams"], num_beams: int) -> Int[Tensor, "rows"]:
    """Return the row of each hypothesis where rows are hypotheses, sentence after sentence."""
    first_rows = torch.arange(len(beams), device=beams.device)[:, None] * num_beams
    return (first_rows + beams).flatten()


def rows_of_sentences(sentences: Int[Tensor, "kept"], num_beams: int) -> Int[Tensor, "rows"]:
    """Return the rows of all hypotheses of some sentences."""
    beams = torch.arange(num_beams, device=sentences.device)
    return (sentences[:, None] * num_beams + beams).flatten()
