"""Convolutional sequence to sequence learning (Gehring et al., 2017)."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Batch, Sequences
from dragoman.models.attention.observer import Observer
from dragoman.models.convolutional.convolution import Convolution, WeightNormLinear
from dragoman.models.convolutional.options import BlockShape, ConvS2SOptions
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.embedding import (
    Embedding,
    OutputLayer,
    initialise_words,
    make_word_matrices,
)
from dragoman.models.positions.positional_encoding import LearnedPositions
from dragoman.models.state import HypothesisState
from dragoman.shapes import Bool, Float, Int

# Scale that keeps the variance of a sum of two.
HALVED = math.sqrt(0.5)
WORD_STD = 0.1


class Memory(NamedTuple):
    """Encoder output of the source sentences: z, z + e, and where there are words."""

    keys: Float[Tensor, "sentences length model_dim"]
    values: Float[Tensor, "sentences length model_dim"]
    is_token: Bool[Tensor, "sentences length"]


class EncoderBlock(nn.Module):
    r"""Residual block of a centred convolution and a gated linear unit.

    Parameters
    ----------
    input_dim : int
        Width of the inputs.
    shape : BlockShape
        Width of the outputs, and the kernel size.
    dropout : float
        Dropout on what the convolution reads.

    Notes
    -----
    :math:`(x + v(\mathrm{conv}(x)))\sqrt{1/2}` with the gated linear unit
    :math:`v([A\;B]) = A\odot\sigma(B)`; where the width changes, x goes through a linear map.
    """

    def __init__(self, input_dim: int, shape: BlockShape, dropout: float) -> None:
        super().__init__()
        self.convolution = _convolution(input_dim, shape, causal=False)
        self.shortcut = _shortcut(input_dim, shape.width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "batch length input_dim"],
        is_token: Bool[Tensor, "batch length"],
    ) -> Float[Tensor, "batch length width"]:
        """Apply the block."""
        gated = functional.glu(self.convolution(self.dropout(states), is_token), dim=-1)
        return (gated + self.shortcut(states)) * HALVED


class SourceAttention(nn.Module):
    r"""Cross-attention of a decoder block.

    Parameters
    ----------
    width : int
        Width of the decoder's block.
    model_dim : int
        Width of the word vectors and of the encoder's output.

    Notes
    -----
    :math:`d_i=Wh_i+b+g_i` with g the embedding of the word read last;
    :math:`a_{ij}=\mathrm{softmax}_j(d_i\cdot z_j)`, not scaled;
    :math:`c_i=m\sqrt{1/m}\sum_j a_{ij}(z_j+e_j)` with m the real length of the source, which undoes
    the shrinking of a mean over m; then :math:`(h_i+Uc_i+b')\sqrt{1/2}`. The map U back to the
    block's width is that of the authors' programme; the paper does not mention it.
    """

    def __init__(self, width: int, model_dim: int) -> None:
        super().__init__()
        self.query = WeightNormLinear(width, model_dim)
        self.output = WeightNormLinear(model_dim, width)
        self.observer: Observer | None = None

    def forward(
        self,
        states: Float[Tensor, "sentences queries width"],
        embedded: Float[Tensor, "sentences queries model_dim"],
        memory: Memory,
    ) -> Float[Tensor, "sentences queries width"]:
        """Attend."""
        query = self.query(states) + embedded
        scores = query @ memory.keys.transpose(1, 2)
        weights = scores.masked_fill(~memory.is_token.unsqueeze(1), -math.inf).softmax(dim=-1)
        if self.observer is not None:
            weights = self.observer(weights.unsqueeze(1)).squeeze(1)
        context = weights @ memory.values
        root = memory.is_token.sum(dim=1).to(context.dtype).sqrt()[:, None, None]
        return (states + self.output(context * root)) * HALVED


class DecoderBlock(nn.Module):
    """Residual block of a causal convolution, a gated linear unit and cross-attention.

    Parameters
    ----------
    input_dim : int
        Width of the inputs.
    shape : BlockShape
        Width of the outputs, and the kernel size.
    model_dim : int
        Width of the word vectors and of the encoder's output.
    dropout : float
        Dropout on what the convolution reads.

    Notes
    -----
    The attention reads the gated unit's output before the way around is added, as in the authors'
    programme; the paper's equations would allow either.
    """

    def __init__(self, input_dim: int, shape: BlockShape, model_dim: int, dropout: float) -> None:
        super().__init__()
        self.convolution = _convolution(input_dim, shape, causal=True)
        self.cross_attention = SourceAttention(shape.width, model_dim)
        self.shortcut = _shortcut(input_dim, shape.width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        states: Float[Tensor, "batch length input_dim"],
        embedded: Float[Tensor, "batch length model_dim"],
        memory: Memory,
    ) -> Float[Tensor, "batch length width"]:
        """Apply the block to whole sentences at once, as in training."""
        gated = functional.glu(self.convolution(self.dropout(states)), dim=-1)
        return (self.cross_attention(gated, embedded, memory) + self.shortcut(states)) * HALVED

    def step(
        self,
        states: Float[Tensor, "sentences beams input_dim"],
        embedded: Float[Tensor, "sentences beams model_dim"],
        memory: Memory,
        past: Float[Tensor, "sentences beams memory input_dim"],
    ) -> tuple[Float[Tensor, "sentences beams width"], Tensor]:
        """Apply the block to the newest token of each hypothesis."""
        convolved, past = self.convolution.step(self.dropout(states), past)
        gated = functional.glu(convolved, dim=-1)
        found = self.cross_attention(gated, embedded, memory)
        return (found + self.shortcut(states)) * HALVED, past


class ConvS2S(nn.Module):
    """Encoder–decoder model: embeddings, encoder, decoder, output layer.

    Parameters
    ----------
    options : ConvS2SOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.

    Notes
    -----
    Every map but the word vectors is weight-normalised. The output layer, which the authors'
    programme normalises too where it is not tied, is the plain one of all families here.
    """

    def __init__(self, options: ConvS2SOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.keep = 1 - options.dropout
        sizes = (vocabulary.source_size, vocabulary.target_size)
        dim, dropout = options.model_dim, options.dropout
        source, target, output = make_word_matrices(
            sizes, options.tied_embeddings, embedding_dim=dim, output_dim=options.output_dim
        )
        places = [LearnedPositions(options.max_positions, dim) for _ in range(2)]
        self.source_embedding = Embedding(source, places[0], pad_id=self.pad_id, dropout=dropout)
        self.target_embedding = Embedding(target, places[1], pad_id=self.pad_id, dropout=dropout)
        shapes = options.encoder_shapes
        self.encoder_input = WeightNormLinear(dim, shapes[0].width)
        self.encoder: Sequence[EncoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            EncoderBlock(below.width, shape, dropout)
            for below, shape in pairwise([shapes[0], *shapes])
        )
        self.encoder_output = WeightNormLinear(shapes[-1].width, dim)
        shapes = options.decoder_shapes
        self.decoder_input = WeightNormLinear(dim, shapes[0].width)
        self.decoder: Sequence[DecoderBlock] = nn.ModuleList(  # type: ignore[assignment]
            DecoderBlock(below.width, shape, dim, dropout)
            for below, shape in pairwise([shapes[0], *shapes])
        )
        self.decoder_output = WeightNormLinear(shapes[-1].width, options.output_dim)
        self.dropout = nn.Dropout(dropout)
        self.output = OutputLayer(output, pad_id=self.pad_id)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise all weights.

        With p the share that dropout keeps and n the inputs of a neuron: convolutions before
        gates N(0, √(4p/n)), linear maps and an output layer of its own N(0, √(p/n)), so that each
        keeps the variance; words and positions N(0, 0.1); biases and the padding's row zero.
        """
        initialise_words(self, WORD_STD)
        output = self.output.words
        if output is not self.target_embedding.words:
            nn.init.normal_(output, std=math.sqrt(self.keep / output.size(1)))
            output[self.pad_id] = 0
        gated = {each.linear for each in self.modules() if isinstance(each, Convolution)}
        for module in self.modules():
            if isinstance(module, WeightNormLinear):
                gain = 4 if module in gated else 1
                module.initialise(math.sqrt(gain * self.keep / module.in_features))
            elif isinstance(module, LearnedPositions):
                nn.init.normal_(module.weight, std=WORD_STD)

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        memory = self.encode(batch.source)
        embedded = self.target_embedding(batch.target.shifted(self.pad_id))
        states = self.decoder_input(embedded)
        for block in self.decoder:
            states = block(states, embedded, memory)
        return Output(self.dropout(self.decoder_output(states)), None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences.

        Notes
        -----
        The gradient into the encoder is divided by twice the number of attentions that send one;
        that into the source's word vectors through z + e is not.
        """
        is_token = source.is_token
        embedded = self.source_embedding(source.read_ids, 0, source.lengths)
        states = self.encoder_input(embedded)
        for block in self.encoder:
            states = block(states, is_token)
        keys = self.encoder_output(states)
        # The value stays the same to the last bit; the gradient is scaled.
        keys = keys.detach().lerp(keys, 1 / (2 * len(self.decoder)))
        return Memory(keys, keys + embedded, is_token)

    def start(self, memory: Memory, capacity: int) -> HypothesisState:  # noqa: ARG002
        """Start one hypothesis for each sentence.

        Parameters
        ----------
        memory : Memory
            The source sentences.
        capacity : int
            Largest number of tokens of a hypothesis; ignored, as the state does not grow.

        Notes
        -----
        A block remembers the last k − 1 vectors that its convolution read. There is no coverage:
        every block attends to the source for itself, and no one of these attentions says which
        words have been translated.
        """
        past = {
            f"block_{index}": block.convolution.start(len(memory.keys), memory.keys)
            for index, block in enumerate(self.decoder)
        }
        return HypothesisState(hypotheses=past, sentences=memory._asdict())

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams output_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        memory = Memory(**state.sentences)
        flat = tokens.flatten().unsqueeze(1)
        embedded = self.target_embedding(flat, state.length).view(*tokens.shape, -1)
        states = self.decoder_input(embedded)
        past = dict(state.hypotheses)
        for (name, seen), block in zip(state.hypotheses.items(), self.decoder, strict=True):
            states, past[name] = block.step(states, embedded, memory, seen)
        return self.dropout(self.decoder_output(states)), state.after(**past)


def _convolution(input_dim: int, shape: BlockShape, *, causal: bool) -> Convolution:
    """Make a convolution whose output feeds a gated linear unit."""
    linear = WeightNormLinear(shape.kernel_size * input_dim, 2 * shape.width)
    return Convolution(linear, kernel_size=shape.kernel_size, causal=causal)


def _shortcut(input_dim: int, width: int) -> nn.Module:
    """Make the residual path: identity, unless the width changes."""
    return nn.Identity() if input_dim == width else WeightNormLinear(input_dim, width)
