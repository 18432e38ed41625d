"""ByteNet: neural machine translation in linear time (Kalchbrenner et al., 2016)."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Batch, Sequences
from dragoman.models.convolutional.convolution import Convolution
from dragoman.models.convolutional.options import ByteNetOptions
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.embedding import (
    Embedding,
    OutputLayer,
    initialise_words,
    make_word_matrices,
)
from dragoman.models.state import HypothesisState
from dragoman.shapes import Bool, Float, Int

SOURCE = "source"
Length = TypeVar("Length", int, Tensor)


class Block(nn.Module):
    """Residual block: narrow to d, dilated convolution, widen to 2d.

    Parameters
    ----------
    options : ByteNetOptions
        The model's shape.
    dilation : int
        How far apart the places stand that the convolution combines.
    causal : bool
        Whether no later place may be seen, as in the decoder.

    Notes
    -----
    For translation: norm, ReLU, 1×1 (2d → d), norm, ReLU, 1×k dilated, norm, ReLU, 1×1 (d → 2d).
    For language models the second ReLU and its convolution are a `multiplicative_unit`, which needs
    no rectified input.
    """

    def __init__(self, options: ByteNetOptions, dilation: int, *, causal: bool) -> None:
        super().__init__()
        inner_dim, kernel_size = options.model_dim, options.kernel_size
        self.is_multiplicative = options.block == "multiplicative"
        convolved_dim = 4 * inner_dim if self.is_multiplicative else inner_dim
        self.input_norm = nn.LayerNorm(2 * inner_dim)
        self.narrow = nn.Linear(2 * inner_dim, inner_dim)
        self.inner_norm = nn.LayerNorm(inner_dim)
        self.convolution = Convolution(
            nn.Linear(kernel_size * inner_dim, convolved_dim),
            kernel_size=kernel_size,
            dilation=dilation,
            causal=causal,
        )
        self.output_norm = nn.LayerNorm(inner_dim)
        self.widen = nn.Linear(inner_dim, 2 * inner_dim)
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self,
        states: Float[Tensor, "batch length stream_dim"],
        is_place: Bool[Tensor, "batch length"] | None = None,
    ) -> Float[Tensor, "batch length stream_dim"]:
        """Apply the block to whole sentences."""
        inner = self._narrow(states)
        return states + self._widen(inner, self.convolution(inner, is_place))

    def step(
        self,
        states: Float[Tensor, "sentences beams stream_dim"],
        past: Float[Tensor, "sentences beams memory inner_dim"],
    ) -> tuple[Float[Tensor, "sentences beams stream_dim"], Tensor]:
        """Apply the block to the newest token of each hypothesis."""
        inner = self._narrow(states)
        convolved, past = self.convolution.step(inner, past)
        return states + self._widen(inner, convolved), past

    def _narrow(self, states: Tensor) -> Tensor:
        """Compute the input of the convolution."""
        inner = self.inner_norm(self.narrow(self.input_norm(states).relu()))
        return inner if self.is_multiplicative else inner.relu()

    def _widen(self, inner: Tensor, convolved: Tensor) -> Tensor:
        """Compute the output of the block's residual branch."""
        if self.is_multiplicative:
            convolved = multiplicative_unit(inner, convolved)
        return self.dropout(self.widen(self.output_norm(convolved).relu()))


def multiplicative_unit(
    states: Float[Tensor, "*places dim"], convolved: Float[Tensor, "*places four_dim"]
) -> Float[Tensor, "*places dim"]:
    r"""Combine states and convolved states by three gates.

    Notes
    -----
    :math:`g_1\odot\tanh(g_2\odot h+g_3\odot u)` with :math:`g_{1,2,3}=\sigma(\mathrm{conv}(h))`
    and :math:`u=\tanh(\mathrm{conv}(h))`: a step of an LSTM whose cell is its own input.
    """
    first, second, third, update = convolved.chunk(4, dim=-1)
    kept = second.sigmoid() * states + third.sigmoid() * update.tanh()
    return first.sigmoid() * kept.tanh()


class ByteNet(nn.Module):
    r"""Encoder–decoder model: embeddings, encoder, decoder stacked on it, output layer.

    Parameters
    ----------
    options : ByteNetOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.

    Notes
    -----
    The decoder predicts word t from the words before it and from the encoder's place t: there is
    no attention, so the stack itself must carry each source word to where it is needed. The source
    is lengthened with empty places to :math:`|\hat t|=\lceil a|s|\rceil+b`, so that the encoder
    says something there too; beyond them the decoder gets nothing from it and may go on.

    The paper leaves open how the decoder is joined on. Here place t of the encoder goes through
    norm, ReLU and 1×1 (2d → 2d) and is added to the vector of the word read at t. After the
    decoder's blocks follow a norm, 1×1 (2d → 2d) and ReLU.
    """

    def __init__(self, options: ByteNetOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        # A fraction, so that lengths are exact and equal on every device.
        self.length_ratio = Fraction(options.length_ratio).limit_denominator(1000)
        self.length_extra = options.length_extra
        dim = 2 * options.model_dim
        sizes = (vocabulary.source_size, vocabulary.target_size)
        words = make_word_matrices(sizes, options.tied_embeddings, embedding_dim=dim)
        self.source_embedding, self.target_embedding = (
            Embedding(each, None, pad_id=self.pad_id, dropout=options.dropout, scale=math.sqrt(dim))
            for each in (words.source, words.target)
        )
        self.encoder: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(options, dilation, causal=False)
            for dilation in options.num_encoder_sets * options.dilations
        )
        self.encoder_norm = nn.LayerNorm(dim)
        self.encoder_output = nn.Linear(dim, dim)
        self.decoder: Sequence[Block] = nn.ModuleList(  # type: ignore[assignment]
            Block(options, dilation, causal=True)
            for dilation in options.num_decoder_sets * options.dilations
        )
        self.decoder_norm = nn.LayerNorm(dim)
        self.decoder_output = nn.Linear(dim, dim)
        self.output = OutputLayer(words.output, pad_id=self.pad_id)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise all weights.

        The paper does not say how. Maps are normal with variance 2/n where a ReLU stands before
        or after them and 1/n in a multiplicative unit, n being their inputs; biases zero, norms
        one and zero (as PyTorch makes them); words have variance 1 once scaled, the padding's row
        is zero.
        """
        initialise_words(self)
        gates = {
            each.convolution.linear
            for each in self.modules()
            if isinstance(each, Block) and each.is_multiplicative
        }
        for module in self.modules():
            if isinstance(module, nn.Linear):
                gain = 1 if module in gates else 2
                nn.init.normal_(module.weight, std=math.sqrt(gain / module.in_features))
                nn.init.zeros_(module.bias)

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        source = self.encode(batch.source)
        states = self.target_embedding(batch.target.shifted(self.pad_id))
        # Pads with zeros, or cuts what is longer than the target.
        states = states + functional.pad(source, (0, 0, 0, states.size(1) - source.size(1)))
        for block in self.decoder:
            states = block(states)
        return Output(self._finish(states), None)

    def encode(self, source: Sequences) -> Float[Tensor, "sentences unfolded stream_dim"]:
        """Encode the source sentences.

        Notes
        -----
        Beyond a sentence's own unfolded length every convolution reads zeros, so that a longer
        sentence in the same batch changes nothing.
        """
        num_places = self.unfold(source.ids.size(1))
        lengths = self.unfold(source.lengths)
        is_place = torch.arange(num_places, device=lengths.device) < lengths[:, None]
        ids = source.read_ids.where(source.is_token, self.pad_id)
        ids = functional.pad(ids, (0, num_places - ids.size(1)), value=self.pad_id)
        states = self.source_embedding(ids)
        for block in self.encoder:
            states = block(states, is_place)
        found = self.encoder_output(self.encoder_norm(states).relu())
        return found.masked_fill(~is_place.unsqueeze(-1), 0.0)

    def unfold(self, length: Length) -> Length:
        """Return the length to which a source sentence is unfolded."""
        numerator, denominator = self.length_ratio.as_integer_ratio()
        return -(-length * numerator // denominator) + self.length_extra

    def start(
        self,
        memory: Float[Tensor, "sentences unfolded stream_dim"],
        capacity: int,  # noqa: ARG002
    ) -> HypothesisState:
        """Start one hypothesis for each sentence.

        Parameters
        ----------
        memory : Float[Tensor, "sentences unfolded stream_dim"]
            The source sentences.
        capacity : int
            Largest number of tokens of a hypothesis; ignored, as the state does not grow.

        Notes
        -----
        A block remembers the last (k − 1)·r vectors that its convolution read. There is no
        coverage, since there is no attention.
        """
        past = {
            f"block_{index}": block.convolution.start(len(memory), memory)
            for index, block in enumerate(self.decoder)
        }
        return HypothesisState(hypotheses=past, sentences={SOURCE: memory})

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams stream_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        states = self.target_embedding(tokens)
        source = state.sentences[SOURCE]
        if state.length < source.size(1):
            states = states + source[:, state.length].unsqueeze(1)
        past = dict(state.hypotheses)
        for (name, seen), block in zip(state.hypotheses.items(), self.decoder, strict=True):
            states, past[name] = block.step(states, seen)
        return self._finish(states), state.after(**past)

    def _finish(self, states: Tensor) -> Tensor:
        """Compute the input of the output layer."""
        return self.decoder_output(self.decoder_norm(states)).relu()
