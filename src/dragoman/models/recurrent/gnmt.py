"""GNMT (Wu et al., 2016), and the mixture of experts built on it (Shazeer et al., 2017)."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.attention.additive_attention import (
    AdditiveAttention,
    Annotations,
    Attended,
)
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.layers.experts import Experts, Routing
from dragoman.models.recurrent.cells import CellState, LSTMCell
from dragoman.models.recurrent.encoder_decoder import (
    Memory,
    make_word_layers,
    start_stack,
    step_stack,
)
from dragoman.models.recurrent.layer import BidirectionalLayer, RecurrentLayer
from dragoman.models.recurrent.options import GNMTOptions
from dragoman.models.state import HypothesisState
from dragoman.shapes import Float, Int

PUBLISHED_BOUND, PUBLISHED_DIM = 0.04, 1024
# Counted from 1: this layer and those above it have residual connections.
FIRST_RESIDUAL_LAYER = 3


class ExpertsBetweenLayers(nn.Module):
    r"""A mixture of experts between two layers of the stack.

    Parameters
    ----------
    options : GNMTOptions
        The model's shape.
    states_dim : int
        Width of what the layer below says.

    Notes
    -----
    :math:`x + \sigma(\mathrm{MoE}(x))`, with dropout on the second term (Shazeer et al., 2017,
    appendix E).
    """

    def __init__(self, options: GNMTOptions, states_dim: int) -> None:
        super().__init__()
        assert options.num_experts is not None
        self.experts = Experts(
            states_dim,
            options.expert_dim,
            options.num_experts,
            options.experts_per_token,
            options.balance_weight,
        )
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self, states: Float[Tensor, "*places states_dim"], routing: Routing | None = None
    ) -> Float[Tensor, "*places states_dim"]:
        """Add the output of the experts."""
        return states + self.dropout(torch.sigmoid(self.experts(states, routing)))


class GNMTEncoder(nn.Module):
    r"""A bidirectional layer below unidirectional ones.

    Parameters
    ----------
    options : GNMTOptions
        The model's shape.

    Notes
    -----
    Layer i reads :math:`x^{i-1}` and says :math:`m^i`; then :math:`x^i = m^i + x^{i-1}` from the
    third layer on, :math:`x^i = m^i` below (equation 6 of that paper).
    """

    def __init__(self, options: GNMTOptions) -> None:
        super().__init__()
        dim, num_layers = options.model_dim, options.num_encoder_layers
        self.bottom = BidirectionalLayer(LSTMCell(dim, dim), LSTMCell(dim, dim))
        self.upper: Sequence[RecurrentLayer] = nn.ModuleList(  # type: ignore[assignment]
            RecurrentLayer(LSTMCell(2 * dim if number == 2 else dim, dim))
            for number in range(2, num_layers + 1)
        )
        self.memory_dim = dim if num_layers > 1 else 2 * dim
        # Below the third layer as published, or below the last if there are only two.
        self.first_above_experts = min(3, num_layers)
        self.experts: ExpertsBetweenLayers | None = None
        if options.num_experts is not None:
            states_dim = dim if num_layers > 2 else 2 * dim
            self.experts = ExpertsBetweenLayers(options, states_dim)
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self,
        words: Float[Tensor, "sentences length model_dim"],
        lengths: Int[Tensor, "sentences"],
        routing: Routing | None = None,
    ) -> Float[Tensor, "sentences length memory_dim"]:
        """Encode the source sentences."""
        states, _ = self.bottom(words, lengths)
        for number, layer in enumerate(self.upper, start=2):
            if self.experts is not None and number == self.first_above_experts:
                states = self.experts(states, routing)
            states = _join(number, layer(self.dropout(states))[0], states)
        return states


class GNMTDecoder(nn.Module):
    r"""A stack of LSTMs, of which the lowest attends to the source for all.

    Parameters
    ----------
    options : GNMTOptions
        The model's shape.
    memory_dim : int
        Width of what the encoder says.

    Notes
    -----
    With :math:`m^1_{t-1}` the lowest layer's last output, attention finds
    :math:`c_t = \mathrm{Attention}(m^1_{t-1}, h)`, and layer i reads :math:`[x^{i-1}_t; c_t]`.
    Only the lowest layer must therefore go from word to word; those above it have all contexts at
    once, and run through a fused kernel. The lowest layer's input matrix is kept in two parts, so
    that the words' part is had at once too.
    """

    def __init__(self, options: GNMTOptions, memory_dim: int) -> None:
        super().__init__()
        dim = options.model_dim
        self.cross_attention = AdditiveAttention(dim, memory_dim, dim)
        self.word = nn.Linear(dim, 4 * dim, bias=False)
        self.bottom = LSTMCell(memory_dim, dim)
        self.experts: ExpertsBetweenLayers | None = None
        if options.num_experts is not None:
            self.experts = ExpertsBetweenLayers(options, dim)
        self.upper: Sequence[RecurrentLayer] = nn.ModuleList(  # type: ignore[assignment]
            RecurrentLayer(LSTMCell(dim + memory_dim, dim))
            for _ in range(1, options.num_decoder_layers)
        )
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self,
        words: Float[Tensor, "sentences length model_dim"],
        source: Annotations,
        routing: Routing | None = None,
    ) -> Float[Tensor, "sentences length model_dim"]:
        """Process whole target sentences, as in training."""
        below = self.bottom.start((len(words), 1), words)
        outputs, found = [], []
        for projected in self.word(words).split(1, dim=1):
            attended, below = self._read(projected, below, source)
            outputs.append(below[0])
            found.append(attended.values)
        states, contexts = torch.cat(outputs, dim=1), torch.cat(found, dim=1)
        if self.experts is not None:
            states = self.experts(states, routing)
        for number, layer in enumerate(self.upper, start=2):
            inputs = torch.cat([self.dropout(states), contexts], dim=-1)
            states = _join(number, layer(inputs)[0], states)
        return self.dropout(states)

    def step(
        self,
        words: Float[Tensor, "sentences beams model_dim"],
        states: Sequence[CellState],
        source: Annotations,
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], list[CellState], Attended]:
        """Decode one more token of each hypothesis.

        Returns
        -------
        tuple[Float[Tensor, "sentences beams model_dim"], list[CellState], Attended]
            What the output layer reads, what each layer now remembers, and what was attended to.
        """
        found, after = self._read(self.word(words), states[0], source)
        afterwards = [after]
        said = after[0] if self.experts is None else self.experts(after[0])
        for number, (layer, before) in enumerate(zip(self.upper, states[1:], strict=True), start=2):
            inputs = torch.cat([self.dropout(said), found.values], dim=-1)
            after = layer.cell(layer.cell.project(inputs), before)
            said = _join(number, after[0], said)
            afterwards.append(after)
        return self.dropout(said), afterwards, found

    def _read(
        self, projected: Tensor, state: CellState, source: Annotations
    ) -> tuple[Attended, CellState]:
        """Attend to the source, then run the lowest layer on one token of each hypothesis."""
        found = self.cross_attention(state[0], source.keys, source.values, source.mask)
        return found, self.bottom(projected + self.bottom.project(found.values), state)


class GNMT(nn.Module):
    """Encoder–decoder model: embeddings, encoder, decoder, output layer.

    Parameters
    ----------
    options : GNMTOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.
    """

    def __init__(self, options: GNMTOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, output = make_word_layers(
            vocabulary,
            options.tied_embeddings,
            embedding_dim=options.model_dim,
            output_dim=options.model_dim,
            dropout=options.dropout,
        )
        self.encoder = GNMTEncoder(options)
        self.decoder = GNMTDecoder(options, self.encoder.memory_dim)
        self.output = output
        self._initialise(PUBLISHED_BOUND * math.sqrt(PUBLISHED_DIM / options.model_dim))

    @torch.no_grad()
    def _initialise(self, bound: float) -> None:
        """Initialise all weights.

        Weights are uniform, within ±.04 at the published width of 1024 and so that sums keep their
        size at any other: ±.04 would silence a stack of 64. The padding's row is zero. Experts
        begin as they say themselves.
        """
        own = {each for part in self.modules() if isinstance(part, Experts)
               for each in part.parameters()}  # fmt: skip
        for parameter in self.parameters():
            if parameter not in own:
                nn.init.uniform_(parameter, -bound, bound)
        for layer in (self.source_embedding, self.target_embedding, self.output):
            layer.words[self.pad_id] = 0

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        losses: list[Tensor] = []
        memory = self._encode(batch.source, Routing(batch.source.is_token, losses))
        source = self.decoder.cross_attention.annotate(*memory)
        words = self.target_embedding(batch.target.shifted(self.pad_id))
        hidden = self.decoder(words, source, Routing(batch.target.is_token, losses))
        return Output(hidden, torch.stack(losses).sum() if losses else None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences."""
        return self._encode(source, Routing(source.is_token))

    def start(self, memory: Memory, capacity: int) -> HypothesisState:  # noqa: ARG002
        """Start one hypothesis for each sentence.

        Parameters
        ----------
        memory : Memory
            The source sentences.
        capacity : int
            Largest number of tokens of a hypothesis; ignored, as the state does not grow.
        """
        return start_stack(self.decoder, memory)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        return step_stack(self.decoder, self.target_embedding(tokens), state)

    def _encode(self, source: Sequences, routing: Routing) -> Memory:
        """Encode the source sentences; expert losses are added to the routing."""
        words = self.source_embedding(source.read_ids)
        return Memory(self.encoder(words, source.lengths, routing), source.lengths)


def _join(number: int, said: Tensor, read: Tensor) -> Tensor:
    """Add the residual connection to the output of a layer, from the third layer on."""
    return said + read if number >= FIRST_RESIDUAL_LAYER else said
