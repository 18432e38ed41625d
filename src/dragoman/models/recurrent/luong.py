"""Luong's models: global and local attention over LSTMs (Luong et al., 2015)."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch, Sequences
from dragoman.models.attention.additive_attention import Annotations, Attended
from dragoman.models.attention.multiplicative_attention import MultiplicativeAttention
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.recurrent.encoder_decoder import make_word_layers
from dragoman.models.recurrent.layer import reverse_sequences
from dragoman.models.recurrent.options import LuongOptions
from dragoman.models.recurrent.seq2seq import (
    RecurrentStack,
    initialise_uniformly,
    join_states,
    part_states,
)
from dragoman.models.state import COVERAGE, HypothesisState, uncovered
from dragoman.shapes import Float, Int


class Memory(NamedTuple):
    """Encoder output of the source sentences: the decoder's start, and what it looks at."""

    states: Float[Tensor, "sentences layers 2 model_dim"]
    annotations: Annotations


class LuongDecoder(nn.Module):
    r"""A stack of LSTMs whose top state attends to the source.

    Parameters
    ----------
    options : LuongOptions
        The model's shape.

    Notes
    -----
    With h_t the highest layer's state and c_t what attention finds from it,
    :math:`\tilde h_t = \tanh(W_c[c_t; h_t])` is what the output layer reads. Input feeding gives
    the lowest layer :math:`[E y_{t-1}; \tilde h_{t-1}]` to read; its matrix is kept in two parts,
    so that the words' part is had for a whole sentence at once. Then each word waits for the one
    before; without input feeding all words of a sentence that is known go through together.
    """

    def __init__(self, options: LuongOptions) -> None:
        super().__init__()
        dim = options.model_dim
        self.stack = _make_stack(options)
        self.feed = nn.Linear(dim, 4 * dim, bias=False) if options.input_feeding else None
        self.cross_attention = MultiplicativeAttention(
            dim,
            score=options.score,
            span=options.attention_span,
            half_width=options.half_width,
            max_positions=options.max_positions,
        )
        self.combine = nn.Linear(2 * dim, dim, bias=False)
        self.dropout = nn.Dropout(options.dropout)

    def forward(
        self, words: Float[Tensor, "batch length word_dim"], memory: Memory
    ) -> Float[Tensor, "batch length model_dim"]:
        """Process whole target sentences, as in training."""
        places = torch.arange(words.size(1), device=words.device)
        if self.feed is None:
            highest, _ = self.stack(words, part_states(memory.states))
            return self._look(highest, memory.annotations, places)[0]
        states = part_states(memory.states.unsqueeze(1))
        hidden = words.new_zeros(len(words), 1, self.combine.out_features)
        outputs = []
        for place, projected in zip(
            places.split(1), self.stack.project(words).split(1, dim=1), strict=True
        ):
            highest, states = self.stack.step(projected + self.feed(hidden), states)
            hidden, _ = self._look(highest, memory.annotations, place)
            outputs.append(hidden)
        return torch.cat(outputs, dim=1)

    def step(
        self,
        words: Float[Tensor, "sentences beams word_dim"],
        state: HypothesisState,
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        before = state.hypotheses
        projected = self.stack.project(words)
        if self.feed is not None:
            projected = projected + self.feed(before["found"])
        highest, states = self.stack.step(projected, part_states(before["states"]))
        places = torch.full((words.size(1),), state.length, device=words.device)
        annotations = Annotations.from_sentences(state.sentences)
        hidden, weights = self._look(highest, annotations, places)
        changed = {"states": join_states(states), COVERAGE: before[COVERAGE] + weights}
        if self.feed is not None:
            changed["found"] = hidden
        return hidden, state.after(**changed)

    def _look(
        self, highest: Tensor, annotations: Annotations, places: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Attend to the source; return the combined states and the attention weights."""
        attended: Attended = self.cross_attention(
            highest, annotations.keys, annotations.values, annotations.mask, places
        )
        both = self.combine(torch.cat([attended.values, highest], dim=-1))
        return self.dropout(torch.tanh(both)), attended.weights


class Luong(nn.Module):
    """An encoder–decoder of LSTMs with global or local attention.

    Parameters
    ----------
    options : LuongOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.

    Notes
    -----
    The encoder's last states are those from which the decoder starts. Where the source is read
    from its end, what was read is put back into the order of the words before anybody looks at it:
    the places of local attention and of the score “location”, the coverage and the maps of
    attention all count from the first word of the sentence as it was written.
    """

    def __init__(self, options: LuongOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.options = options
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, output = make_word_layers(
            vocabulary,
            options.tied_embeddings,
            embedding_dim=options.word_dim,
            output_dim=options.model_dim,
            dropout=options.dropout,
        )
        self.encoder = _make_stack(options)
        self.decoder = LuongDecoder(options)
        self.output = output
        self._initialise()

    def _initialise(self) -> None:
        """Initialise: matrices uniform, ±0.1 at the published size (`initialise_uniformly`).

        The paper draws all weights from ±0.1 and says nothing of biases.
        """
        initialise_uniformly(self, 0.1)

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        words = self.target_embedding(batch.target.shifted(self.pad_id))
        return Output(self.decoder(words, self.encode(batch.source)), None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences.

        Returns
        -------
        Memory
            The last state of each layer, and the highest layer's at every word, in the order of
            the words.
        """
        ids, lengths = source.read_ids, source.lengths
        is_reversed = self.options.reverse_source
        if is_reversed:
            ids = reverse_sequences(ids, lengths)
        hidden, states = self.encoder(self.source_embedding(ids), lengths=lengths)
        if is_reversed:
            hidden = reverse_sequences(hidden, lengths)
        return Memory(join_states(states), self.decoder.cross_attention.annotate(hidden, lengths))

    def start(self, memory: Memory, capacity: int) -> HypothesisState:  # noqa: ARG002
        """Start one hypothesis for each sentence."""
        states, annotations = memory
        hypotheses = {
            "states": states.unsqueeze(1),
            COVERAGE: uncovered(annotations.is_token),
        }
        if self.options.input_feeding:
            hypotheses["found"] = states.new_zeros(len(states), 1, states.size(-1))
        return HypothesisState(hypotheses=hypotheses, sentences=annotations.to_sentences())

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        return self.decoder.step(self.target_embedding(tokens), state)


def _make_stack(options: LuongOptions) -> RecurrentStack:
    """Make the layers of encoder or decoder."""
    return RecurrentStack(
        "lstm",
        options.num_layers,
        input_dim=options.word_dim,
        hidden_dim=options.model_dim,
        dropout=options.dropout,
    )
