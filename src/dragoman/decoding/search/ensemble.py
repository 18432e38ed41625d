"""Ensembles: average the probabilities of several models."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dragoman.data.batches import Sequences
from dragoman.decoding.engines.select import choose_engine, load_engine
from dragoman.decoding.options import Precision
from dragoman.errors import OptionError
from dragoman.folder import ModelFolder, join_sentence_facts, read_folder
from dragoman.models.interface import DecoderState, Output
from dragoman.shapes import Float, Int
from dragoman.weights import load_model


@dataclass(frozen=True)
class EnsembleState:
    """The decoder states of all members.

    Parameters
    ----------
    members : tuple[DecoderState, ...]
        A state of each.
    """

    members: tuple[DecoderState, ...]

    @property
    def coverage(self) -> Float[Tensor, "sentences beams source"] | None:
        """Average the members' coverage; None: a member has none."""
        found = [each.coverage for each in self.members]
        known = [each for each in found if each is not None]
        return torch.stack(known).mean(0) if len(known) == len(found) else None

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "EnsembleState":
        """Let each hypothesis continue another of the same sentence."""
        return replace(self, members=tuple(each.reorder(beams) for each in self.members))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "EnsembleState":
        """Drop all sentences but these."""
        return replace(self, members=tuple(each.keep(sentences) for each in self.members))


class Ensemble(nn.Module):
    r"""Models of any families whose probabilities are averaged at each step.

    Parameters
    ----------
    members : Sequence[SearchedModel]
        The models, with the same vocabularies, on one device, not in training; those that are to
        be trained or looked into are `TranslationModel`s.

    Notes
    -----
    :math:`p(y_t \mid y_{<t}, x)=\frac1M\sum_m p_m(y_t \mid y_{<t}, x)`. What its decoder says are
    the logarithms of these, so its output layer has nothing left to do. To a search it is a model
    like any other.
    """

    def __init__(self, members: Sequence[Any]) -> None:
        super().__init__()
        self.members = tuple(members)
        # Known to PyTorch, so that attention can be observed; an engine need not be a module.
        self.modules_among = nn.ModuleList(each for each in members if isinstance(each, nn.Module))
        self.output: Any = nn.Identity()

    def forward(self, batch: Any) -> Output:  # noqa: ANN401
        """Score every target token, given the source and the true tokens before it."""
        hidden = [each.forward(batch).hidden for each in self.members]
        return Output(self._average(hidden), None)

    def encode(self, source: Sequences) -> list[Any]:
        """Encode the source sentences."""
        return [each.encode(source) for each in self.members]

    def start(self, memory: list[Any], capacity: int) -> EnsembleState:
        """Start one hypothesis for each sentence."""
        pairs = zip(self.members, memory, strict=True)
        return EnsembleState(tuple(each.start(read, capacity) for each, read in pairs))

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: EnsembleState
    ) -> tuple[Float[Tensor, "sentences beams vocabulary"], EnsembleState]:
        """Feed one token of each hypothesis to all decoders."""
        hidden, states = [], []
        for member, own in zip(self.members, state.members, strict=True):
            said, after = member.step(tokens, own)
            hidden.append(said)
            states.append(after)
        return self._average(hidden), EnsembleState(tuple(states))

    def _average(self, hidden: Sequence[Tensor]) -> Tensor:
        """Average the members' probabilities."""
        logs = [
            member.output(said).float().log_softmax(-1)
            for member, said in zip(self.members, hidden, strict=True)
        ]
        total = logs[0]
        for other in logs[1:]:
            total = torch.logaddexp(total, other)
        return total - math.log(len(logs))


def read_member(path: Path, first: ModelFolder) -> ModelFolder:
    """Read the folder of a further member, checking that vocabularies agree."""
    folder = read_folder(path)
    if folder.vocabularies.content_hash() != first.vocabularies.content_hash():
        raise OptionError(
            f"{path}: has other subwords than {first.path}, so they cannot translate together; "
            "train it with “--from” that model, or on the same text with the same vocabulary"
        )
    return folder


def join_folders(folders: Sequence[ModelFolder]) -> ModelFolder:
    """Describe an ensemble as one model folder."""
    first = folders[0]
    longest = [each.facts.longest_source for each in folders if each.facts.longest_source]
    facts = replace(
        first.facts,
        longest_source=min(longest, default=0),
        one_sentence_a_line=join_sentence_facts([each.facts for each in folders]),
    )
    shortest = min(folders, key=lambda each: each.options.max_length or sys.maxsize)
    return replace(first, facts=facts, options=shortest.options)


def load_together(
    folders: Sequence[ModelFolder], device: "torch.device | str", precision: Precision
) -> Ensemble:
    """Load the engines of an ensemble."""
    where = torch.device(device)
    return Ensemble(
        [load_engine(each, where, choose_engine(each, where.type, precision)) for each in folders]
    ).eval()


def load_members(folders: Sequence[ModelFolder], device: "torch.device | str") -> Ensemble:
    """Load the members as they were trained, for inspection."""
    return Ensemble([load_model(each).to(device) for each in folders]).eval()
