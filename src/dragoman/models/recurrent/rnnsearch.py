"""RNNsearch (Bahdanau et al., 2015): encoder–decoder with additive attention."""

from typing import NamedTuple

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
from dragoman.models.recurrent.cells import GRUCell
from dragoman.models.recurrent.encoder_decoder import make_word_layers
from dragoman.models.recurrent.layer import BidirectionalLayer
from dragoman.models.recurrent.options import RNNsearchOptions
from dragoman.models.state import COVERAGE, HypothesisState, uncovered
from dragoman.shapes import Float, Int


class Memory(NamedTuple):
    """Encoder output of the source sentences."""

    hidden: Float[Tensor, "sentences length both_dims"]
    first: Float[Tensor, "sentences model_dim"]
    lengths: Int[Tensor, "sentences"]


class RNNsearchDecoder(nn.Module):
    r"""A GRU that attends to the source before each token.

    Parameters
    ----------
    options : RNNsearchOptions
        The model's shape.

    Notes
    -----
    With E y the vector of the word before and c_i what attention finds from s_{i−1}:
    :math:`s_0 = \tanh(W_s \overleftarrow{h}_1)`,
    :math:`s_i = \mathrm{GRU}(s_{i-1}, [E y_{i-1}; c_i])`,
    :math:`\tilde t_i = U_o s_{i-1} + V_o E y_{i-1} + C_o c_i` and
    :math:`t_i = [\max(\tilde t_{i,2j-1}, \tilde t_{i,2j})]_{j=1,\ldots,l}` (appendix A.2.2). The
    unit's input matrix is kept in two parts, W for words and C for contexts, so that the words'
    part is had for a whole sentence at once; in the loop remain only what needs s_{i−1}. What is
    said of word i reads s_{i−1}, so it too is had for all words after the loop.
    """

    def __init__(self, options: RNNsearchOptions) -> None:
        super().__init__()
        dim, both_dims, deep_dim = options.model_dim, 2 * options.model_dim, 2 * options.maxout_dim
        self.cross_attention = AdditiveAttention(dim, both_dims, options.alignment_dim or dim)
        self.first = nn.Linear(dim, dim)
        self.word = nn.Linear(options.word_dim, 3 * dim, bias=False)
        self.cell = GRUCell(both_dims, dim, reset="before")
        self.deep_state = nn.Linear(dim, deep_dim)
        self.deep_word = nn.Linear(options.word_dim, deep_dim, bias=False)
        self.deep_context = nn.Linear(both_dims, deep_dim, bias=False)
        self.dropout = nn.Dropout(options.dropout)

    def start(
        self, first: Float[Tensor, "sentences model_dim"]
    ) -> Float[Tensor, "sentences 1 model_dim"]:
        """Make the initial state.

        Parameters
        ----------
        first : Float[Tensor, "sentences model_dim"]
            What the encoder knew when, coming from the end, it had read the first word.
        """
        return self.first(first).tanh().to(self.cell.weight_hidden.dtype).unsqueeze(1)

    def read(
        self,
        projected: Float[Tensor, "sentences beams gates"],
        state: Float[Tensor, "sentences beams model_dim"],
        source: Annotations,
    ) -> tuple[Attended, Float[Tensor, "sentences beams model_dim"]]:
        """Attend to the source, then process one token."""
        found = self.cross_attention(state, source.keys, source.values, source.mask)
        (after,) = self.cell(projected + self.cell.project(found.values), (state,))
        return found, after

    def say(
        self,
        words: Float[Tensor, "batch length word_dim"],
        states: Float[Tensor, "batch length model_dim"],
        contexts: Float[Tensor, "batch length both_dims"],
    ) -> Float[Tensor, "batch length maxout_dim"]:
        """Compute the input of the output layer: the deep output."""
        deep = self.deep_state(states) + self.deep_word(words) + self.deep_context(contexts)
        return self.dropout(deep.unflatten(-1, (-1, 2)).amax(-1))


class RNNsearch(nn.Module):
    """Encoder–decoder model: a bidirectional encoder and an attentional decoder.

    Parameters
    ----------
    options : RNNsearchOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.
    """

    def __init__(self, options: RNNsearchOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, output = make_word_layers(
            vocabulary,
            options.tied_embeddings,
            embedding_dim=options.word_dim,
            output_dim=options.maxout_dim,
            dropout=options.dropout,
        )
        self.encoder = BidirectionalLayer(
            *(GRUCell(options.word_dim, options.model_dim, reset="before") for _ in range(2))
        )
        self.decoder = RNNsearchDecoder(options)
        self.output = output
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise all weights as published (appendix B.1).

        Recurrent matrices are orthogonal, those of the alignment model N(0, .001²), its vector v_a
        zero, so that at first it looks everywhere alike, biases zero, all else N(0, .01²).
        """
        for module in self.modules():
            if isinstance(module, GRUCell):
                nn.init.normal_(module.weight_input, std=0.01)
                nn.init.zeros_(module.bias)
                for gate in module.weight_hidden.chunk(3):
                    nn.init.orthogonal_(gate)
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, std=0.01)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        alignment = self.decoder.cross_attention
        nn.init.normal_(alignment.query.weight, std=0.001)
        nn.init.normal_(alignment.key.weight, std=0.001)
        nn.init.zeros_(alignment.score)
        initialise_words(self, std=0.01)

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        memory = self.encode(batch.source)
        source = self.decoder.cross_attention.annotate(memory.hidden, memory.lengths)
        words = self.target_embedding(batch.target.shifted(self.pad_id))
        state = self.decoder.start(memory.first)
        states, contexts = [], []
        for projected in self.decoder.word(words).split(1, dim=1):
            found, after = self.decoder.read(projected, state, source)
            states.append(state)
            contexts.append(found.values)
            state = after
        hidden = self.decoder.say(words, torch.cat(states, dim=1), torch.cat(contexts, dim=1))
        return Output(hidden, None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences in both directions."""
        words = self.source_embedding(source.read_ids)
        hidden, (_, (first,)) = self.encoder(words, source.lengths)
        return Memory(hidden, first, source.lengths)

    def start(self, memory: Memory, capacity: int) -> HypothesisState:  # noqa: ARG002
        """Start one hypothesis for each sentence.

        Parameters
        ----------
        memory : Memory
            The source sentences.
        capacity : int
            Largest number of tokens of a hypothesis; ignored, as the state does not grow.
        """
        source = self.decoder.cross_attention.annotate(memory.hidden, memory.lengths)
        begun = {"state": self.decoder.start(memory.first), COVERAGE: uncovered(source.is_token)}
        return HypothesisState(hypotheses=begun, sentences=source.to_sentences())

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams maxout_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        before, coverage = state.hypotheses["state"], state.hypotheses[COVERAGE]
        source = Annotations.from_sentences(state.sentences)
        words = self.target_embedding(tokens)
        found, after = self.decoder.read(self.decoder.word(words), before, source)
        hidden = self.decoder.say(words, before, found.values)
        return hidden, state.after(state=after, coverage=coverage + found.weights)
