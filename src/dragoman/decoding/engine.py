"""A trained Transformer rebuilt for translating: the same numbers, with less around them.

Projections that read the same vectors are one product; caches are written in place; hypotheses move
only when they must; products are in float32 or in eight bits. It offers the seam that every family
offers to the search, and nothing for training.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from dragoman.data.batches import Sequences
from dragoman.decoding.engine_cache import EngineCache, SourceCache, whole_blocks
from dragoman.decoding.engine_layers import (
    EngineAttention,
    EngineDecoderLayer,
    EngineEncoderLayer,
    EngineFeedForward,
    MakeProduct,
)
from dragoman.decoding.engine_state import EngineMemory, EngineState
from dragoman.decoding.products import Product
from dragoman.decoding.scripted_decoder import script_decoder
from dragoman.decoding.shared_cache import SharedCache
from dragoman.models.embedding import Embedding
from dragoman.models.options import TransformerOptions
from dragoman.models.transformer import Transformer

# A CPU reads so many source words at once: what is computed of more leaves its caches.
ENCODED_WORDS = 512


def can_rebuild(options: object) -> bool:
    """Say whether a model can be rebuilt.

    Parameters
    ----------
    options : object
        Its family and shape.

    Returns
    -------
    bool
        True for Transformers with full attention and without experts, unless their norms ask at
        which place of its sentence a word stands: words of all sentences are read as one.
    """
    return (
        isinstance(options, TransformerOptions)
        and options.is_usual
        and options.norm != "batch-per-step"
    )


@dataclass(frozen=True, kw_only=True)
class Weights:
    """What an engine computes with.

    Parameters
    ----------
    make_product : MakeProduct
        Makes the product of one or several linear layers side by side.
    source_words : Product
        From the ids of source words to their vectors, not scaled.
    target_words : Product
        Likewise of the target.
    output : Product
        From hidden states to the scores of all words; a fresh tensor.
    output_for : Callable[[Tensor], Product]
        From the ids of some words to the product that scores only these.
    """

    make_product: MakeProduct
    source_words: Product
    target_words: Product
    output: Product
    output_for: Callable[[Tensor], Product]


class Engine:
    """A Transformer that only translates.

    Parameters
    ----------
    model : Transformer
        Its shape, norms and positions; of its matrices only what `weights` takes from them.
    weights : Weights
        What takes their place.
    """

    def __init__(self, model: Transformer, weights: Weights) -> None:
        make_product = weights.make_product
        self._model = model
        self._source_words, self._target_words = weights.source_words, weights.target_words
        self._output, self._output_for = weights.output, weights.output_for
        self._encoder = [
            EngineEncoderLayer(
                EngineAttention(layer.self_attention, make_product, is_self=True),
                EngineFeedForward(layer.feed_forward, make_product),
                layer.self_attention_norm,
                layer.feed_forward_norm,
            )
            for layer in model.encoder
        ]
        self.decoder = [
            EngineDecoderLayer(
                EngineAttention(layer.self_attention, make_product, is_self=True),
                EngineAttention(layer.cross_attention, make_product, is_self=False),
                EngineFeedForward(layer.feed_forward, make_product),
                layer.self_attention_norm,
                layer.cross_attention_norm,
                layer.feed_forward_norm,
            )
            for layer in model.decoder
        ]
        self._script = script_decoder(self.decoder)
        self.pad_id = model.output.pad_id

    @property
    def numbers_per_word(self) -> int:
        """The numbers that all layers together remember of a source word."""
        heads = self.decoder[0].cross.heads
        return len(self.decoder) * (heads.key_width + heads.value_width)

    def output(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword.

        Parameters
        ----------
        hidden : Float[Tensor, "... model_dim"]
            What the decoder says at each position.

        Returns
        -------
        Float[Tensor, "... vocabulary"]
            Logits.
        """
        scores = self._output(hidden.reshape(-1, hidden.size(-1)))
        scores[:, self.pad_id] = -torch.inf
        return scores.view(*hidden.shape[:-1], -1)

    def output_for(self, words: Int[Tensor, "selected"]) -> Product:
        """Make what scores only some words.

        Parameters
        ----------
        words : Int[Tensor, "selected"]
            Their ids, the padding not among them.

        Returns
        -------
        Product
            From hidden states to their logits.
        """
        product = self._output_for(words)

        def score(hidden: Tensor) -> Tensor:
            return product(hidden.reshape(-1, hidden.size(-1))).view(*hidden.shape[:-1], -1)

        return score

    def encode(self, source: Sequences) -> EngineMemory:
        """Read the source sentences.

        Parameters
        ----------
        source : Sequences
            Their tokens.

        Returns
        -------
        EngineMemory
            A vector for each source position.
        """
        num_sentences, longest = source.ids.shape
        times = torch.arange(whole_blocks(longest), device=source.ids.device)
        mask = torch.where(times < source.lengths[:, None], 0.0, -torch.inf)[:, None, None]
        mask = mask.to(self._model.source_embedding.words.dtype)
        size = num_sentences if source.ids.is_cuda else max(1, ENCODED_WORDS // longest)
        if size >= num_sentences:
            hidden = self.read(source.read_ids, source.lengths, mask)
            return EngineMemory(hidden, source.lengths, mask)
        parts = []
        for first in range(0, num_sentences, size):
            some = slice(first, first + size)
            lengths = source.lengths[some]
            width = int(lengths.max())
            own_mask = mask[some, :, :, : whole_blocks(width)]
            hidden = self.read(source.read_ids[some, :width], lengths, own_mask)
            parts.append(pad(hidden, (0, 0, 0, longest - width)))
        return EngineMemory(torch.cat(parts), source.lengths, mask)

    def read(
        self,
        ids: Int[Tensor, "sentences length"],
        lengths: Int[Tensor, "sentences"],
        mask: Tensor | None,
    ) -> Float[Tensor, "sentences length model_dim"]:
        """Compute the encoder's vectors without asking the device anything.

        Parameters
        ----------
        ids : Int[Tensor, "sentences length"]
            Source words, padded.
        lengths : Int[Tensor, "sentences"]
            Words of each sentence.
        mask : Tensor | None
            What is added to scores, at least as wide as the words; None: nothing.

        Returns
        -------
        Float[Tensor, "sentences length model_dim"]
            A vector for each position.
        """
        words = self._source_words(ids)
        states = _add_positions(words, self._model.source_embedding, 0, lengths)
        shape = states.shape
        states = states.flatten(0, 1)
        for layer in self._encoder:
            states = layer.read(states, shape, mask)
        if self._model.encoder_norm is not None:
            states = self._model.encoder_norm(states.view(shape)).flatten(0, 1)
        return states.view(shape)

    def source_positions(self, count: int) -> Tensor | None:
        """Return what the encoder adds to words to tell where they stand.

        Parameters
        ----------
        count : int
            How many positions.

        Returns
        -------
        Tensor | None
            Their vectors; None: nothing is added.
        """
        positions = self._model.source_embedding.positions
        return None if positions is None else positions(0, count, None)

    def start(self, memory: EngineMemory, capacity: int) -> EngineState:
        """Begin one hypothesis for each sentence.

        Parameters
        ----------
        memory : EngineMemory
            The source sentences.
        capacity : int
            How many words a hypothesis may get.

        Returns
        -------
        EngineState
            Before the first word.
        """
        hidden, heads, num_layers = memory.hidden, self.decoder[0].own.heads, len(self.decoder)
        projected = (layer.cross.project_memory(hidden) for layer in self.decoder)
        past: EngineCache | SharedCache
        if self._script is None:
            places = min(capacity, whole_blocks(hidden.size(1) + 1))
            past = EngineCache.make(num_layers, places, len(hidden), heads, hidden)
        else:
            past = SharedCache.make(num_layers, len(hidden), heads)
        return EngineState(
            past=past,
            source=SourceCache.of_layers(projected, num_layers, memory.mask.size(-1)),
            mask=memory.mask,
            lengths=memory.lengths,
            rows=None,
            num_beams=1,
            length=0,
            capacity=capacity,
            beams_dtype=None if self._script is None else self._script.beams_dtype,
        )

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: EngineState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], EngineState]:
        """Read one more word of each hypothesis.

        Parameters
        ----------
        tokens : Int[Tensor, "sentences beams"]
            The newest words; the padding id to begin.
        state : EngineState
            What came before. It is used up.

        Returns
        -------
        tuple[Float[Tensor, "sentences beams model_dim"], EngineState]
            What the decoder now says, and the state for the next step.
        """
        state = state.moved()
        length = state.length
        lengths = state.lengths[:, None].expand_as(tokens).flatten()
        words = self._target_words(tokens.reshape(-1, 1))
        states = _add_positions(words, self._model.target_embedding, length, lengths)
        if isinstance(state.past, SharedCache):
            assert self._script is not None
            states = self._script(states.squeeze(1), state.past, state.source, state.mask)
        else:
            for index, layer in enumerate(self.decoder):
                past, source = state.past.layer(index), state.source.layer(index)
                states = layer.step(states, past, source, state.mask, length)
        if self._model.decoder_norm is not None:
            states = self._model.decoder_norm(states, length)
        return states.view(*tokens.shape, -1), replace(state, length=length + 1)


def _add_positions(words: Tensor, embedding: Embedding, first: int, lengths: Tensor) -> Tensor:
    """Scale word vectors and tell them where they stand, as `Embedding` does."""
    words = words * embedding.scale
    if embedding.positions is None:
        return words
    return words + embedding.positions(first, words.size(1), lengths)
