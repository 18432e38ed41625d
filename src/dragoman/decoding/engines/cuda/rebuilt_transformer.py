"""A trained Transformer rebuilt for translating: the same numbers, with less around them.

Projections that read the same vectors are one product; caches are written in place; hypotheses move
only when they must. It offers the seam that every family offers to the search, and nothing for
training. It serves cards.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import embedding

from dragoman.data.batches import Sequences
from dragoman.decoding.engines.cuda.kv_cache import DecoderKVCache, SourceKVCache, round_to_blocks
from dragoman.decoding.engines.cuda.rebuilt_layers import (
    FloatProduct,
    RebuiltAttention,
    RebuiltDecoderLayer,
    RebuiltEncoderLayer,
    RebuiltFeedForward,
)
from dragoman.decoding.engines.cuda.rebuilt_state import RebuiltMemory, RebuiltState
from dragoman.models.layers.embedding import Embedding
from dragoman.models.transformer import Transformer
from dragoman.shapes import Float, Int


class RebuiltTransformer:
    """A Transformer rebuilt for inference.

    Parameters
    ----------
    model : Transformer
        The trained model, one that `can_rebuild` accepts. Its weights are not copied but for
        projections that are put side by side.
    """

    def __init__(self, model: Transformer) -> None:
        self._model = model
        self._source_words, self._target_words = (
            each.words.detach() for each in (model.source_embedding, model.target_embedding)
        )
        bias = model.output.bias
        self._output = FloatProduct(
            model.output.words.detach(), None if bias is None else bias.detach()
        )
        self._encoder = [
            RebuiltEncoderLayer(
                RebuiltAttention(layer.self_attention, is_self=True),
                RebuiltFeedForward(layer.feed_forward),
                layer.self_attention_norm,
                layer.feed_forward_norm,
            )
            for layer in model.encoder
        ]
        self.decoder = [
            RebuiltDecoderLayer(
                RebuiltAttention(layer.self_attention, is_self=True),
                RebuiltAttention(layer.cross_attention, is_self=False),
                RebuiltFeedForward(layer.feed_forward),
                layer.self_attention_norm,
                layer.cross_attention_norm,
                layer.feed_forward_norm,
            )
            for layer in model.decoder
        ]
        self.pad_id = model.output.pad_id

    def output(self, hidden: Float[Tensor, "... model_dim"]) -> Float[Tensor, "... vocabulary"]:
        """Score every subword."""
        scores = self._output(hidden.reshape(-1, hidden.size(-1)))
        scores[:, self.pad_id] = -torch.inf
        return scores.view(*hidden.shape[:-1], -1)

    def encode(self, source: Sequences) -> RebuiltMemory:
        """Encode the source sentences."""
        if not self._model.reads_end:
            source = source.without_end()
        times = torch.arange(round_to_blocks(source.ids.size(1)), device=source.ids.device)
        mask = torch.where(times < source.lengths[:, None], 0.0, -torch.inf)[:, None, None]
        mask = mask.to(self._model.source_embedding.words.dtype)
        hidden = self.read(source.read_ids, source.lengths, mask)
        return RebuiltMemory(hidden, source.lengths, mask)

    def read(
        self,
        ids: Int[Tensor, "sentences length"],
        lengths: Int[Tensor, "sentences"],
        mask: Tensor | None,
    ) -> Float[Tensor, "sentences length model_dim"]:
        """Compute encoder states without synchronising with the device."""
        words = embedding(ids, self._source_words)
        states = _add_positions(words, self._model.source_embedding, 0, lengths)
        shape = states.shape
        states = states.flatten(0, 1)
        for layer in self._encoder:
            states = layer.read(states, shape, mask)
        if self._model.encoder_norm is not None:
            states = self._model.encoder_norm(states.view(shape)).flatten(0, 1)
        return states.view(shape)

    def source_positions(self, count: int) -> Tensor | None:
        """Return the positional encoding that the encoder adds."""
        positions = self._model.source_embedding.positions
        return None if positions is None else positions(0, count, None)

    def start(self, memory: RebuiltMemory, capacity: int) -> RebuiltState:
        """Start one hypothesis for each sentence."""
        hidden, heads, num_layers = memory.hidden, self.decoder[0].own.heads, len(self.decoder)
        projected = (layer.cross.project_memory(hidden) for layer in self.decoder)
        places = min(capacity, round_to_blocks(hidden.size(1) + 1))
        past = DecoderKVCache.make(num_layers, places, len(hidden), heads, hidden)
        return RebuiltState(
            past=past,
            source=SourceKVCache.of_layers(projected, num_layers, memory.mask.size(-1)),
            mask=memory.mask,
            lengths=memory.lengths,
            rows=None,
            num_beams=1,
            length=0,
            capacity=capacity,
        )

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: RebuiltState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], RebuiltState]:
        """Feed one token of each hypothesis to the decoder."""
        state = state.moved()
        length = state.length
        lengths = state.lengths[:, None].expand_as(tokens).flatten()
        words = embedding(tokens.reshape(-1, 1), self._target_words)
        states = _add_positions(words, self._model.target_embedding, length, lengths)
        for index, layer in enumerate(self.decoder):
            past, source = state.past.layer(index), state.source.layer(index)
            states = layer.step(states, past, source, state.mask, length)
        if self._model.decoder_norm is not None:
            states = self._model.decoder_norm(states, length)
        return states.view(*tokens.shape, -1), replace(state, length=length + 1)


def _add_positions(words: Tensor, adding: Embedding, first: int, lengths: Tensor) -> Tensor:
    """Scale embeddings and add positional encodings, as `Embedding` does."""
    words = words * adding.scale
    if adding.positions is None:
        return words
    return words + adding.positions(first, words.size(1), lengths)
