"""What recurrent encoder-decoders share: word layers, and the state of a stack under attention."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

import torch
from torch import Tensor

from dragoman.models.attention.additive_attention import (
    AdditiveAttention,
    Annotations,
    Attended,
)
from dragoman.models.interface import Vocabulary
from dragoman.models.layers.embedding import Embedding, OutputLayer, make_word_matrices
from dragoman.models.recurrent.cells import CellState, LSTMCell
from dragoman.models.state import COVERAGE, HypothesisState, uncovered
from dragoman.shapes import Float, Int


class WordLayers(NamedTuple):
    """The layers that hold word vectors."""

    source_embedding: Embedding
    target_embedding: Embedding
    output: OutputLayer


def make_word_layers(
    vocabulary: Vocabulary,
    tied: Literal["all", "target", "none"],
    *,
    embedding_dim: int,
    output_dim: int,
    dropout: float,
) -> WordLayers:
    """Make embeddings without positions and the output layer, their weights still empty."""
    words = make_word_matrices(
        (vocabulary.source_size, vocabulary.target_size),
        tied,
        embedding_dim=embedding_dim,
        output_dim=output_dim,
    )
    pad_id = vocabulary.pad_id
    return WordLayers(
        Embedding(words.source, None, pad_id=pad_id, dropout=dropout),
        Embedding(words.target, None, pad_id=pad_id, dropout=dropout),
        OutputLayer(words.output, pad_id=pad_id),
    )


class Memory(NamedTuple):
    """Encoder output of the source sentences."""

    hidden: Float[Tensor, "sentences length memory_dim"]
    lengths: Int[Tensor, "sentences"]


@runtime_checkable
class StackedDecoder(Protocol):
    """A stack of LSTMs whose lowest layer attends to the source."""

    cross_attention: AdditiveAttention
    bottom: LSTMCell
    upper: Sequence[Any]

    def step(
        self, words: Tensor, states: Sequence[CellState], source: Annotations
    ) -> tuple[Tensor, list[CellState], Attended]:
        """Decode one more token of each hypothesis."""
        ...


def start_stack(decoder: StackedDecoder, memory: Memory) -> HypothesisState:
    """Begin one hypothesis for each sentence, every layer at zero."""
    source = decoder.cross_attention.annotate(*memory)
    shape = (len(memory.hidden), 1, 1 + len(decoder.upper))
    hidden, cells = decoder.bottom.start(shape, memory.hidden)
    begun = {"hidden": hidden, "cells": cells, COVERAGE: uncovered(source.is_token)}
    return HypothesisState(hypotheses=begun, sentences=source.to_sentences())


def step_stack(
    decoder: StackedDecoder,
    words: Float[Tensor, "sentences beams word_dim"],
    state: HypothesisState,
) -> tuple[Float[Tensor, "sentences beams model_dim"], HypothesisState]:
    """Decode one more token of each hypothesis."""
    before = state.hypotheses
    layers = list(zip(before["hidden"].unbind(2), before["cells"].unbind(2), strict=True))
    source = Annotations.from_sentences(state.sentences)
    said, after, found = decoder.step(words, layers, source)
    hidden, cells = (torch.stack(each, dim=2) for each in zip(*after, strict=True))
    coverage = before[COVERAGE] + found.weights
    return said, state.after(hidden=hidden, cells=cells, coverage=coverage)
