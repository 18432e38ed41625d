"""The Transformer of “Attention Is All You Need” (figure 1)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import (
    KeysAndValues,
    MultiheadAttention,
    self_attend,
    write_cache,
)
from dragoman.models.embedding import Embedding, OutputLayer
from dragoman.models.feed_forward import FeedForward
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.normalisation import AddAndNorm
from dragoman.models.options import TransformerOptions
from dragoman.models.positions import LearnedPositions, SinusoidalPositions


class Memory(NamedTuple):
    """What the encoder made of the source sentences."""

    hidden: Float[Tensor, "sentences length model_dim"]
    lengths: Int[Tensor, "sentences"]


@dataclass(frozen=True, kw_only=True)
class TransformerState:
    """What the decoder remembers: keys and values of each layer.

    Parameters
    ----------
    past : tuple[KeysAndValues, ...]
        Of the hypotheses so far, one row a hypothesis, with room for those to come.
    source : tuple[KeysAndValues, ...]
        Of the source sentences, one row a sentence, shared by its hypotheses.
    source_mask : Mask
        Where the source sentences end.
    num_beams : int
        Hypotheses a sentence.
    length : int
        Words read so far.
    """

    past: tuple[KeysAndValues, ...]
    source: tuple[KeysAndValues, ...]
    source_mask: Mask
    num_beams: int
    length: int

    def reorder(self, beams: Int[Tensor, "sentences beams"]) -> "TransformerState":
        """Let each hypothesis continue another of the same sentence.

        Parameters
        ----------
        beams : Int[Tensor, "sentences beams"]
            The hypothesis that each new one continues.

        Returns
        -------
        TransformerState
            With as many hypotheses as `beams` names.
        """
        if beams.size(1) == self.num_beams == 1:
            return self
        first_rows = torch.arange(len(beams), device=beams.device)[:, None] * self.num_beams
        past = self._past_rows((first_rows + beams).flatten())
        return replace(self, past=past, num_beams=beams.size(1))

    def keep(self, sentences: Int[Tensor, "kept"]) -> "TransformerState":
        """Forget all sentences but these.

        Parameters
        ----------
        sentences : Int[Tensor, "kept"]
            Their places.

        Returns
        -------
        TransformerState
            The smaller state.
        """
        beams = torch.arange(self.num_beams, device=sentences.device)
        rows = (sentences[:, None] * self.num_beams + beams).flatten()
        source = tuple(KeysAndValues(*(each[sentences] for each in layer)) for layer in self.source)
        lengths = self.source_mask.key_lengths
        mask = Mask(key_lengths=None if lengths is None else lengths[sentences])
        return replace(self, past=self._past_rows(rows), source=source, source_mask=mask)

    def _past_rows(self, rows: Tensor) -> tuple[KeysAndValues, ...]:
        """Copy some hypotheses' rows, leaving the unfilled part as it comes."""
        chosen = []
        for layer in self.past:
            copies = []
            for each in layer:
                copy = each.new_empty(len(rows), *each.shape[1:])
                copy[:, :, : self.length] = each[rows, :, : self.length]
                copies.append(copy)
            chosen.append(KeysAndValues(*copies))
        return tuple(chosen)


class EncoderLayer(nn.Module):
    """Self-attention, then a feed-forward layer: the left block of figure 1.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.self_attention = _attention(options)
        self.self_attention_norm = _add_and_norm(options)
        self.feed_forward = FeedForward(options.model_dim, options.feed_forward_dim)
        self.feed_forward_norm = _add_and_norm(options)

    def forward(
        self, states: Float[Tensor, "batch length model_dim"], mask: Mask
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the layer.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The source positions.
        mask : Mask
            Where the sentences end.

        Returns
        -------
        Float[Tensor, "batch length model_dim"]
            The source positions, each informed by the others.
        """
        states = self.self_attention_norm(
            states, lambda x: self_attend(self.self_attention, x, mask)
        )
        return self.feed_forward_norm(states, self.feed_forward)


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, feed-forward: the right block of figure 1.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.self_attention = _attention(options)
        self.self_attention_norm = _add_and_norm(options)
        self.cross_attention = _attention(options)
        self.cross_attention_norm = _add_and_norm(options)
        self.feed_forward = FeedForward(options.model_dim, options.feed_forward_dim)
        self.feed_forward_norm = _add_and_norm(options)

    def forward(
        self,
        states: Float[Tensor, "batch length model_dim"],
        source: KeysAndValues,
        source_mask: Mask,
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the layer to whole sentences at once, as in training.

        Parameters
        ----------
        states : Float[Tensor, "batch length model_dim"]
            The target positions.
        source : KeysAndValues
            The source positions, projected by this layer.
        source_mask : Mask
            Where the source sentences end.

        Returns
        -------
        Float[Tensor, "batch length model_dim"]
            The target positions, each informed by those before it and by the source.

        Notes
        -----
        Padding stands at the end, so looking no later also means not looking at padding.
        """
        states = self.self_attention_norm(
            states, lambda x: self_attend(self.self_attention, x, Mask(causal=True))
        )
        states = self.cross_attention_norm(
            states, lambda x: self.cross_attention(x, source, source_mask)
        )
        return self.feed_forward_norm(states, self.feed_forward)

    def step(
        self,
        states: Float[Tensor, "sentences beams model_dim"],
        past: KeysAndValues,
        source: KeysAndValues,
        state: TransformerState,
    ) -> Float[Tensor, "sentences beams model_dim"]:
        """Apply the layer to the newest word of each hypothesis.

        Parameters
        ----------
        states : Float[Tensor, "sentences beams model_dim"]
            The newest words.
        past : KeysAndValues
            This layer's cache, which is written.
        source : KeysAndValues
            The source positions, projected by this layer.
        state : TransformerState
            Where the source sentences end, and how many words were read.

        Returns
        -------
        Float[Tensor, "sentences beams model_dim"]
            The newest words, informed.

        Notes
        -----
        Towards their own past the hypotheses are separate rows; towards the source those of one
        sentence are queries of the same row, so that its keys are stored once.
        """

        def attend_to_past(x: Tensor) -> Tensor:
            rows = x.flatten(0, 1).unsqueeze(1)
            new = self.self_attention.keys_and_values(rows)
            seen = write_cache(past, state.length, new)
            return self.self_attention(rows, seen, Mask()).view_as(x)

        states = self.self_attention_norm(states, attend_to_past)
        states = self.cross_attention_norm(
            states, lambda x: self.cross_attention(x, source, state.source_mask)
        )
        return self.feed_forward_norm(states, self.feed_forward)


class Transformer(nn.Module):
    """The whole model: embeddings, encoder, decoder, output layer.

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
        target_words = nn.Parameter(torch.empty(vocabulary.target_size, options.model_dim))
        source_words, output_words = target_words, target_words
        if options.tied_embeddings != "all":
            source_words = nn.Parameter(torch.empty(vocabulary.source_size, options.model_dim))
        if options.tied_embeddings == "none":
            output_words = nn.Parameter(torch.empty_like(target_words))
        positions = _positions(options)
        pad_id, dropout = vocabulary.pad_id, options.dropout
        self.source_embedding = Embedding(source_words, positions, pad_id=pad_id, dropout=dropout)
        self.target_embedding = Embedding(target_words, positions, pad_id=pad_id, dropout=dropout)
        self.encoder: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(options) for _ in range(options.num_encoder_layers)
        )
        self.decoder: Sequence[DecoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(options) for _ in range(options.num_decoder_layers)
        )
        is_pre = options.norm_position == "pre"
        self.encoder_norm = nn.LayerNorm(options.model_dim) if is_pre else nn.Identity()
        self.decoder_norm = nn.LayerNorm(options.model_dim) if is_pre else nn.Identity()
        self.output = OutputLayer(output_words, pad_id=vocabulary.pad_id)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Set every weight: all of it happens here.

        Matrices are Xavier-uniform, biases zero, norms one and zero (as PyTorch makes them),
        words and positions normal with variance 1/d_model, the padding's row zero.
        """
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, Embedding | OutputLayer):
                nn.init.normal_(module.words, std=1 / math.sqrt(module.words.size(1)))
                module.words[self.pad_id] = 0
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.weight.size(1)))

    def forward(self, batch: Batch) -> Output:
        """Predict every target word from the source and the true words before it.

        Parameters
        ----------
        batch : Batch
            Sentence pairs.

        Returns
        -------
        Output
            A hidden state for each target position; the output layer turns it into scores.
        """
        memory = self.encode(batch.source)
        source_mask = Mask(key_lengths=memory.lengths)
        states = self.target_embedding(batch.target.shifted(self.pad_id))
        for layer in self.decoder:
            source = layer.cross_attention.keys_and_values(memory.hidden)
            states = layer(states, source, source_mask)
        return Output(self.decoder_norm(states), None)

    def encode(self, source: Sequences) -> Memory:
        """Read the source sentences.

        Parameters
        ----------
        source : Sequences
            Their tokens.

        Returns
        -------
        Memory
            A vector for each source position.
        """
        mask = Mask(key_lengths=source.lengths)
        states = self.source_embedding(source.ids)
        for layer in self.encoder:
            states = layer(states, mask)
        return Memory(self.encoder_norm(states), source.lengths)

    def start(self, memory: Memory, capacity: int) -> TransformerState:
        """Begin one hypothesis for each sentence.

        Parameters
        ----------
        memory : Memory
            The source sentences.
        capacity : int
            How many words a hypothesis may get.

        Returns
        -------
        TransformerState
            Before the first word.
        """
        source = tuple(
            layer.cross_attention.keys_and_values(memory.hidden) for layer in self.decoder
        )
        past = tuple(
            KeysAndValues(
                *(each.new_zeros(len(each), each.size(1), capacity, each.size(3)) for each in layer)
            )
            for layer in source
        )
        mask = Mask(key_lengths=memory.lengths)
        return TransformerState(past=past, source=source, source_mask=mask, num_beams=1, length=0)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: TransformerState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], TransformerState]:
        """Read one more word of each hypothesis.

        Parameters
        ----------
        tokens : Int[Tensor, "sentences beams"]
            The newest words; the padding id to begin.
        state : TransformerState
            What came before. It is used up.

        Returns
        -------
        tuple[Float[Tensor, "sentences beams model_dim"], TransformerState]
            What the decoder now says, and the state for the next step.
        """
        flat = tokens.flatten().unsqueeze(1)
        states = self.target_embedding(flat, state.length).view(*tokens.shape, -1)
        for layer, past, source in zip(self.decoder, state.past, state.source, strict=True):
            states = layer.step(states, past, source, state)
        return self.decoder_norm(states), replace(state, length=state.length + 1)


def _attention(options: TransformerOptions) -> MultiheadAttention:
    """Make one attention layer of the model's shape."""
    return MultiheadAttention(
        options.model_dim,
        options.num_heads,
        key_dim=options.head_key_dim,
        value_dim=options.head_value_dim,
        bias=options.attention_bias,
    )


def _add_and_norm(options: TransformerOptions) -> AddAndNorm:
    """Make one residual connection of the model's kind."""
    return AddAndNorm(options.model_dim, dropout=options.dropout, position=options.norm_position)


def _positions(options: TransformerOptions) -> SinusoidalPositions | LearnedPositions:
    """Make the positions of the model's kind, shared by encoder and decoder."""
    if options.positions == "learned":
        return LearnedPositions(options.max_positions, options.model_dim)
    return SinusoidalPositions(options.model_dim)
