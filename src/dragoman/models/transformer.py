"""The Transformer of “Attention Is All You Need” (figure 1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.data.packed_mask import bidirectional_mask, causal_mask, cross_mask
from dragoman.data.packing import PackedBatch
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import KeysAndValues
from dragoman.models.attention.self_attention import Cache
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.embedding import (
    Embedding,
    OutputLayer,
    Positions,
    initialise_words,
    make_word_matrices,
)
from dragoman.models.layers.experts import Routing
from dragoman.models.layers.residual import begin_residual, end_residual
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import (
    IndexPositions,
    LearnedPositions,
    NormalisedPositions,
    SinusoidalPositions,
)
from dragoman.models.state import rows_of_beams, rows_of_sentences
from dragoman.models.transformer_layers import DecoderLayer, EncoderLayer, make_final_norm
from dragoman.shapes import Float, Int


class Memory(NamedTuple):
    """Encoder output, with the mask of the source."""

    hidden: Float[Tensor, "sentences length model_dim"]
    lengths: Int[Tensor, "sentences"]


@dataclass(frozen=True, kw_only=True)
class TransformerState:
    """Decoder state: cache of each layer, and projected source.

    Parameters
    ----------
    past : tuple[Cache, ...]
        What self-attention keeps of the hypotheses so far, one row a hypothesis.
    source : tuple[KeysAndValues, ...]
        Of the source sentences, one row a sentence, shared by its hypotheses.
    source_mask : Mask
        Where the source sentences end.
    num_beams : int
        Hypotheses a sentence.
    length : int
        Words read so far.
    """

    past: tuple[Cache, ...]
    source: tuple[KeysAndValues, ...]
    source_mask: Mask
    num_beams: int
    length: int

    @property
    def coverage(self) -> None:
        """Many heads look at the source, each for its own reasons: there is no one coverage."""
        return

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "TransformerState":
        """Let each hypothesis continue another of the same sentence."""
        if beams.size(1) == self.num_beams == 1:
            return self
        past = self._past_rows(rows_of_beams(beams, self.num_beams))
        return replace(self, past=past, num_beams=beams.size(1))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "TransformerState":
        """Drop all sentences but these."""
        rows = rows_of_sentences(sentences, self.num_beams)
        source = tuple(KeysAndValues(*(each[sentences] for each in layer)) for layer in self.source)
        lengths = self.source_mask.key_lengths
        mask = Mask(key_lengths=None if lengths is None else lengths[sentences])
        return replace(self, past=self._past_rows(rows), source=source, source_mask=mask)

    def _past_rows(self, rows: Tensor) -> tuple[Cache, ...]:
        """Copy the caches of some hypotheses."""
        return tuple(layer.rows(rows, self.length) for layer in self.past)


class Transformer(nn.Module):
    """Encoder–decoder Transformer: embeddings, encoder, decoder, output layer.

    Parameters
    ----------
    options : TransformerOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.
    """

    def __init__(self, options: TransformerOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, self.output = make_embeddings(
            options, vocabulary
        )
        self.encoder: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(options) for _ in range(options.num_encoder_layers)
        )
        self.decoder: Sequence[DecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(options) for _ in range(options.num_decoder_layers)
        )
        self.encoder_norm = make_final_norm(options)
        self.decoder_norm = make_final_norm(options)
        self._has_experts = options.num_experts is not None
        self._is_masked = options.decoder_mask
        self.reads_end = options.source_end
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise all weights: see `initialise_transformer`."""
        initialise_transformer(self)

    def forward(self, batch: Batch | PackedBatch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        if isinstance(batch, PackedBatch):
            return Output(self._read_packed(batch), None)
        losses: list[Tensor] = []
        routing = Routing(batch.source.is_token, losses) if self._has_experts else None
        memory = self.encode(batch.source, routing)
        source_mask = Mask(key_lengths=memory.lengths)
        states = self.target_embedding(
            batch.target.shifted(self.pad_id), lengths=batch.source.lengths
        )
        routing = Routing(batch.target.is_token, losses) if self._has_experts else None
        lengths = None if self._is_masked else batch.target.lengths
        for layer in self.decoder:
            source = layer.cross_attention.keys_and_values(memory.hidden)
            states = layer(states, source, source_mask, routing, lengths)
        if self.decoder_norm is not None:
            states = self.decoder_norm(states)
        return Output(states, torch.stack(losses).sum() if losses else None)

    def _read_packed(self, batch: PackedBatch) -> Float[Tensor, "tokens model_dim"]:
        """Run teacher forcing on packed sentences: the same layers with other masks."""
        source, target = batch.source, batch.target
        vectors = self.source_embedding.packed(source.read_ids, source.places, source.longest)
        states = begin_residual(vectors, self.encoder_norm)
        mask = bidirectional_mask(source)
        for encoder_layer in self.encoder:
            states = encoder_layer.packed(states, mask)
        memory = end_residual(states, self.encoder_norm)
        words = target.shifted(self.pad_id)
        vectors = self.target_embedding.packed(words, target.places, target.longest)
        states = begin_residual(vectors, self.decoder_norm)
        mask, source_mask = causal_mask(target), cross_mask(target, source)
        for layer in self.decoder:
            states = layer.packed(states, memory, mask, source_mask)
        return end_residual(states, self.decoder_norm)

    def encode(self, source: Sequences, routing: Routing | None = None) -> Memory:
        """Encode the source sentences."""
        if not self.reads_end:
            source = source.without_end()
        states = self.source_embedding(source.read_ids, lengths=source.lengths)
        for layer in self.encoder:
            states = layer(states, source.lengths, routing)
        if self.encoder_norm is not None:
            states = self.encoder_norm(states)
        return Memory(states, source.lengths)

    def start(self, memory: Memory, capacity: int) -> TransformerState:
        """Start one hypothesis for each sentence."""
        source = tuple(
            layer.cross_attention.keys_and_values(memory.hidden) for layer in self.decoder
        )
        past = tuple(
            layer.self_attention.start(len(memory.lengths), capacity, known.keys)
            for layer, known in zip(self.decoder, source, strict=True)
        )
        mask = Mask(key_lengths=memory.lengths)
        return TransformerState(past=past, source=source, source_mask=mask, num_beams=1, length=0)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: TransformerState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], TransformerState]:
        """Decode one more token of each hypothesis."""
        lengths = state.source_mask.key_lengths
        if lengths is not None:
            lengths = lengths[:, None].expand_as(tokens).flatten()
        states = self.target_embedding(tokens.flatten().unsqueeze(1), state.length, lengths)
        caches = []
        for layer, past, source in zip(self.decoder, state.past, state.source, strict=True):
            states, cache = layer.step(states, past, source, state.source_mask, state.length)
            caches.append(cache)
        if self.decoder_norm is not None:
            states = self.decoder_norm(states, state.length)
        states = states.view(*tokens.shape, -1)
        return states, replace(state, past=tuple(caches), length=state.length + 1)


def make_embeddings(
    options: TransformerOptions, vocabulary: Vocabulary
) -> tuple[Embedding, Embedding, OutputLayer]:
    """Make source embedding, target embedding and output layer, tied as the options say."""
    sizes = (vocabulary.source_size, vocabulary.target_size)
    words = make_word_matrices(sizes, options.tied_embeddings, embedding_dim=options.model_dim)
    positions = make_positions(options)
    source, target = (
        Embedding(
            matrix,
            positions,
            pad_id=vocabulary.pad_id,
            dropout=options.dropout,
            scale=options.model_dim**0.5,
        )
        for matrix in (words.source, words.target)
    )
    output = OutputLayer(words.output, pad_id=vocabulary.pad_id, has_bias=options.output_bias)
    return source, target, output


@torch.no_grad()
def initialise_transformer(model: nn.Module) -> None:
    """Initialise the weights of a Transformer.

    Notes
    -----
    Matrices are Xavier-uniform, biases zero, words and positions normal with variance 1/d_model,
    the padding's row zero. Norms, experts and relative positions have set themselves.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, LearnedPositions):
            nn.init.normal_(module.weight, std=module.weight.size(1) ** -0.5)
    initialise_words(model)


def make_positions(options: TransformerOptions) -> Positions | None:
    """Make the positional encoding, shared by encoder and decoder."""
    match options.positions:
        case "sinusoidal":
            return SinusoidalPositions(options.model_dim)
        case "marian":
            return SinusoidalPositions(options.model_dim, is_inclusive=True)
        case "learned":
            return LearnedPositions(options.max_positions, options.model_dim)
        case "normalised":
            return NormalisedPositions(options.model_dim)
        case "index":
            return IndexPositions(options.model_dim)
        case _:
            return None
