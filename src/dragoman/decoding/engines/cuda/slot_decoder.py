"""A decoder step in which every sentence is at a position of its own."""

import sys

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.decoding.engines.cuda.rebuilt_layers import RebuiltDecoderLayer
from dragoman.decoding.engines.cuda.rebuilt_transformer import RebuiltTransformer
from dragoman.decoding.engines.select import can_rebuild
from dragoman.kernels.cuda_search.beam_attention import beam_attention, source_attention
from dragoman.kernels.cuda_search.beam_slots import Slots
from dragoman.kernels.training.token_embedding import embed_tokens
from dragoman.models.layers.residual import Residual, begin_residual, end_residual
from dragoman.models.options import TransformerOptions
from dragoman.models.positions.positional_encoding import LearnedPositions
from dragoman.models.transformer import Transformer
from dragoman.shapes import Float

# The vocabulary is filled up to a multiple of this, for products that begin at round addresses.
ROUND = 64
POSITIONS = ("sinusoidal", "marian", "learned", "index", "none")


def can_take_slots(options: object) -> bool:
    """Say whether a model can decode sentences at different positions in one step.

    Returns
    -------
    bool
        True for rebuilt Transformers whose positions are added to words, whose norms look at one
        word, and which read the end of a sentence.
    """
    return (
        can_rebuild(options)
        and isinstance(options, TransformerOptions)
        and options.positions in POSITIONS
        and options.norm in ("layer", "rms")
        and options.source_end
    )


class SlotDecoder:
    """Decodes one token of each hypothesis in every slot.

    Parameters
    ----------
    model : Transformer
        The trained model, one that `can_take_slots` accepts.
    engine : RebuiltTransformer
        What was rebuilt of it.

    Notes
    -----
    A layer with rectifiers is eleven kernels: six products, two attentions and three residual
    connections.
    """

    def __init__(self, model: Transformer, engine: RebuiltTransformer) -> None:
        self._layers = engine.decoder
        self._norm = model.decoder_norm
        self._embedding = model.target_embedding
        words = model.output.words.detach()
        self.vocabulary_size = len(words)
        self._output = functional.pad(words, (0, 0, 0, -len(words) % ROUND))
        self._bias = None
        if model.output.bias is not None:
            bias = model.output.bias.detach().float()
            self._bias = functional.pad(bias, (0, -len(words) % ROUND))

    @property
    def num_layers(self) -> int:
        """The number of layers with a cache."""
        return len(self._layers)

    @property
    def num_scores(self) -> int:
        """The width of the output, padding columns included."""
        return len(self._output)

    @property
    def dtype(self) -> torch.dtype:
        """The precision of vectors."""
        return self._output.dtype

    @property
    def memory_width(self) -> int:
        """The numbers that a layer caches of a token, in either attention."""
        heads = self._layers[0].own.heads
        return heads.key_width + heads.value_width

    @property
    def most_positions(self) -> int:
        """The largest number of positions."""
        positions = self._embedding.positions
        return len(positions.weight) if isinstance(positions, LearnedPositions) else sys.maxsize

    def place_vectors(self, count: int) -> Float[Tensor, "positions model_dim"] | None:
        """Return the positional encodings.

        Returns
        -------
        Float[Tensor, "positions model_dim"] | None
            So many, or as many as the model has learnt; None: positions are not told.
        """
        positions = self._embedding.positions
        if positions is None:
            return None
        return positions(0, min(count, self.most_positions), None).detach()

    def project(
        self, hidden: Float[Tensor, "places model_dim"], memory: Float[Tensor, "layers places both"]
    ) -> None:
        """Project encoder states to the keys and values of every layer."""
        for layer, room in zip(self._layers, memory, strict=True):
            room.copy_(layer.cross.memory(hidden))

    def step(
        self,
        slots: Slots,
        past: Float[Tensor, "layers places both"],
        memory: Float[Tensor, "layers source_places both"],
        place_vectors: Float[Tensor, "positions model_dim"] | None,
    ) -> Float[Tensor, "rows scores"]:
        """Decode the newest tokens."""
        embedding = self._embedding
        states = embed_tokens(
            embedding.words.detach(),
            slots.newest.flatten(),
            place_vectors,
            slots.positions.flatten(),
            embedding.scale,
            0.0,
            embedding.pad_id,
        )
        residual = begin_residual(states, self._norm)
        for layer, own, source in zip(self._layers, past, memory, strict=True):
            residual = _read(layer, residual, slots, own, source)
        return self._score(end_residual(residual, self._norm))

    def _score(self, states: Tensor) -> Tensor:
        """Compute logits; float16 products are written as float32."""
        if states.is_cuda and states.dtype != torch.float32:
            scores = torch.mm(states, self._output.t(), out_dtype=torch.float32)
        else:
            scores = functional.linear(states, self._output).float()
        return scores if self._bias is None else scores.add_(self._bias)


def _read(
    layer: RebuiltDecoderLayer, states: Residual, slots: Slots, past: Tensor, memory: Tensor
) -> Residual:
    """Apply one layer to the newest tokens."""

    def own(x: Tensor) -> Tensor:
        found = beam_attention(layer.own.joined(x), past, slots, layer.own.heads)
        return layer.own.output(found)

    def cross(x: Tensor) -> Tensor:
        found = source_attention(layer.cross.query(x), memory, slots, layer.cross.heads)
        return layer.cross.output(found)

    states = layer.own_norm.packed(states, own)
    states = layer.cross_norm.packed(states, cross)
    return layer.feed_norm.packed(states, layer.feed)
