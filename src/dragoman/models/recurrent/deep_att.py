"""Deep-Att (Zhou et al., 2016): fast-forward connections beside the LSTMs of a deep stack."""

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
from dragoman.models.layers.embedding import initialise_words
from dragoman.models.recurrent.cells import CellState, LSTMCell
from dragoman.models.recurrent.encoder_decoder import (
    Memory,
    make_word_layers,
    start_stack,
    step_stack,
)
from dragoman.models.recurrent.layer import RecurrentLayer, reverse_sequences
from dragoman.models.recurrent.options import DeepAttOptions
from dragoman.models.state import HypothesisState
from dragoman.shapes import Float, Int


class FastForwardLayer(nn.Module):
    r"""Layer of a column: a linear fast-forward path, and an LSTM that reads half of it.

    Parameters
    ----------
    input_dim : int
        Width of what is read from below: [f; h] of the layer there, or word vectors.
    model_dim : int
        Cells of the LSTM.

    Notes
    -----
    :math:`f^k_t = W^k_f [f^{k-1}_t; h^{k-1}_t]`, without bias and without non-linearity, so that
    from the words to the top there is a path of products alone; and
    :math:`h^k_t = \mathrm{LSTM}(\mathrm{Half}(f^k_t), h^k_{t-1})`, Half being the first half of the
    elements. f is four times as wide as h, which gives the published widths: 5120 for the four
    vectors on top of the encoder with 512 cells, 1280 for a context.
    """

    def __init__(self, input_dim: int, model_dim: int) -> None:
        super().__init__()
        self.fast = nn.Linear(input_dim, 4 * model_dim, bias=False)
        self.recurrent = RecurrentLayer(LSTMCell(2 * model_dim, model_dim))

    def forward(
        self,
        states: Float[Tensor, "batch length input_dim"],
        reversed_lengths: Int[Tensor, "batch"] | None = None,
    ) -> tuple[Float[Tensor, "batch length fast_dim"], Float[Tensor, "batch length model_dim"]]:
        """Process whole sentences."""
        fast = self.fast(states)
        if reversed_lengths is None:
            return fast, self.recurrent(_half(fast))[0]
        hidden, _ = self.recurrent(reverse_sequences(_half(fast), reversed_lengths))
        return fast, reverse_sequences(hidden, reversed_lengths)


class DeepAttEncoder(nn.Module):
    r"""Two columns of layers that alternate in direction.

    Parameters
    ----------
    options : DeepAttOptions
        The model's shape.

    Notes
    -----
    :math:`e_t = W_p [f^{1}_t; h^{1}_t; f^{2}_t; h^{2}_t]`, the vectors on top of both columns; W_p
    leaves a quarter of their width.
    """

    def __init__(self, options: DeepAttOptions) -> None:
        super().__init__()
        both_dims = 2 * 5 * options.model_dim
        self.memory_dim = both_dims // 4
        self.columns: Sequence[Sequence[FastForwardLayer]] = nn.ModuleList(  # type: ignore[assignment]
            _make_layers(options.num_encoder_layers, options.word_dim, options.model_dim)
            for _ in range(2)
        )
        self.project = nn.Linear(both_dims, self.memory_dim, bias=False)
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self,
        words: Float[Tensor, "sentences length word_dim"],
        lengths: Int[Tensor, "sentences"],
    ) -> Float[Tensor, "sentences length memory_dim"]:
        """Encode the source sentences."""
        tops = []
        for first, column in enumerate(self.columns):
            states = words
            for index, layer in enumerate(column, start=first):
                fast, hidden = layer(states, lengths if index % 2 else None)
                states = torch.cat([fast, self.dropout(hidden)], dim=-1)
            tops.append(states)
        return self.project(torch.cat(tops, dim=-1))


class DeepAttDecoder(nn.Module):
    r"""A column of layers whose lowest attends to the source.

    Parameters
    ----------
    options : DeepAttOptions
        The model's shape.
    memory_dim : int
        Width of what the encoder says.

    Notes
    -----
    With :math:`h^1_{t-1}` the lowest layer's last output, attention finds
    :math:`c_t = \mathrm{Attention}(h^1_{t-1}, e)`, and :math:`f^1_t = W^1_f [E y_{t-1}; c_t]`. The
    output layer reads a linear map of [f; h] of the highest layer. Only the lowest layer must go
    from word to word; those above run through a fused kernel. W¹ is kept in two parts, so that the
    words' part is had at once.
    """

    def __init__(self, options: DeepAttOptions, memory_dim: int) -> None:
        super().__init__()
        dim = options.model_dim
        self.cross_attention = AdditiveAttention(dim, memory_dim, dim)
        self.fast_word = nn.Linear(options.word_dim, 4 * dim, bias=False)
        self.fast_context = nn.Linear(memory_dim, 4 * dim, bias=False)
        self.bottom = LSTMCell(2 * dim, dim)
        self.upper: Sequence[FastForwardLayer] = _make_layers(  # type: ignore[assignment]
            options.num_decoder_layers - 1, 5 * dim, dim
        )
        self.top = nn.Linear(5 * dim, dim, bias=False)
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self, words: Float[Tensor, "sentences length word_dim"], source: Annotations
    ) -> Float[Tensor, "sentences length model_dim"]:
        """Process whole target sentences, as in training."""
        state = self.bottom.start((len(words), 1), words)
        outputs, paths = [], []
        for word in self.fast_word(words).split(1, dim=1):
            _, path, state = self._read(word, state, source)
            outputs.append(state[0])
            paths.append(path)
        fast, hidden = torch.cat(paths, dim=1), torch.cat(outputs, dim=1)
        for layer in self.upper:
            fast, hidden = layer(self._join(fast, hidden))
        return self.top(self._join(fast, hidden))

    def step(
        self,
        words: Float[Tensor, "sentences beams word_dim"],
        states: Sequence[CellState],
        source: Annotations,
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], list[CellState], Attended]:
        """Decode one more token of each hypothesis.

        Returns
        -------
        tuple[Float[Tensor, "sentences beams model_dim"], list[CellState], Attended]
            What the output layer reads, what each layer now remembers, and what was attended to.
        """
        found, fast, after = self._read(self.fast_word(words), states[0], source)
        afterwards = [after]
        for layer, before in zip(self.upper, states[1:], strict=True):
            fast = layer.fast(self._join(fast, after[0]))
            cell = layer.recurrent.cell
            after = cell(cell.project(_half(fast)), before)
            afterwards.append(after)
        return self.top(self._join(fast, after[0])), afterwards, found

    def _read(
        self, word: Tensor, state: CellState, source: Annotations
    ) -> tuple[Attended, Tensor, CellState]:
        """Attend to the source, then run the lowest layer on one token of each hypothesis."""
        found = self.cross_attention(state[0], source.keys, source.values, source.mask)
        fast = word + self.fast_context(found.values)
        return found, fast, self.bottom(self.bottom.project(_half(fast)), state)

    def _join(self, fast: Tensor, hidden: Tensor) -> Tensor:
        """Concatenate f and h, with dropout on h."""
        return torch.cat([fast, self.dropout(hidden)], dim=-1)


class DeepAtt(nn.Module):
    """Encoder–decoder model: embeddings, encoder, decoder, output layer.

    Parameters
    ----------
    options : DeepAttOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.

    Notes
    -----
    Dropout acts on each h on its way up, and nowhere else, as published.
    """

    def __init__(self, options: DeepAttOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, output = make_word_layers(
            vocabulary,
            options.tied_embeddings,
            embedding_dim=options.word_dim,
            output_dim=options.model_dim,
            dropout=0.0,
        )
        self.encoder = DeepAttEncoder(options)
        self.decoder = DeepAttDecoder(options, self.encoder.memory_dim)
        self.output = output
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise all weights.

        Linear maps are normal with variance 1/fan-in, so that nothing grows or dies on the fast
        path however long it is; recurrent matrices are orthogonal, biases zero, but one for the
        forget gates; words are normal with variance 1/width.
        """
        for module in self.modules():
            if isinstance(module, LSTMCell):
                nn.init.normal_(module.weight_input, std=1 / math.sqrt(module.input_dim))
                for gate in module.weight_hidden.chunk(4):
                    nn.init.orthogonal_(gate)
                nn.init.zeros_(module.bias)
                module.forget_bias.fill_(1)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=1 / math.sqrt(module.in_features))
            elif isinstance(module, AdditiveAttention):
                nn.init.normal_(module.score, std=1 / math.sqrt(len(module.score)))
        initialise_words(self)

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        source = self.decoder.cross_attention.annotate(*self.encode(batch.source))
        words = self.target_embedding(batch.target.shifted(self.pad_id))
        return Output(self.decoder(words, source), None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences."""
        words = self.source_embedding(source.read_ids)
        return Memory(self.encoder(words, source.lengths), source.lengths)

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


def _make_layers(num_layers: int, input_dim: int, model_dim: int) -> nn.ModuleList:
    """Make a stack whose upper layers read [f; h] of the layer below."""
    dims = [input_dim if index == 0 else 5 * model_dim for index in range(num_layers)]
    return nn.ModuleList(FastForwardLayer(each, model_dim) for each in dims)


def _half(fast: Tensor) -> Tensor:
    """Return the first half of the elements."""
    return fast[..., : fast.size(-1) // 2]
