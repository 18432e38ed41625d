"""The Feedback Transformer (Fan et al., 2020): every layer attends to a memory of all layers."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from dragoman.data.batches import Batch, Sequences
from dragoman.kernels.training.dropout import Dropout
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import KeysAndValues
from dragoman.models.attention.observer import Observer
from dragoman.models.attention.scaled_dot_product_attention import score_scale
from dragoman.models.interface import Output, Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.state import HypothesisState
from dragoman.models.transformer import Memory, initialise_transformer, make_embeddings
from dragoman.models.transformer_layers import (
    EncoderLayer,
    make_add_and_norm,
    make_cross_attention,
    make_feed_forward,
    make_final_norm,
)
from dragoman.shapes import Float, Int


class FeedbackMemory(nn.Module):
    r"""Make one memory vector of all layers' outputs for a token.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.

    Notes
    -----
    :math:`m_t=\sum_{l=0}^{L}\mathrm{softmax}(w)_l\,x_t^l`, where :math:`x_t^0` is the embedding
    and :math:`x_t^l` what layer l says. Its key and value are projected once, and are the same for
    every layer that looks at them.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.num_heads = options.num_heads
        self.layer_weights = nn.Parameter(torch.zeros(options.num_decoder_layers + 1))
        bias, width = options.attention_bias, options.model_dim
        self.key = nn.Linear(width, self.num_heads * options.head_key_dim, bias=bias)
        self.value = nn.Linear(width, self.num_heads * options.head_value_dim, bias=bias)

    def forward(
        self, layers: Sequence[Float[Tensor, "sentences beams model_dim"]]
    ) -> Float[Tensor, "sentences beams 1 model_dim"]:
        """Average the outputs of the layers.

        Parameters
        ----------
        layers : Sequence[Float[Tensor, "sentences beams model_dim"]]
            The embedding of each hypothesis's newest word, then what each layer says of it.
        """
        mean = torch.stack(tuple(layers), dim=-1) @ self.layer_weights.softmax(0)
        return mean.unsqueeze(2)

    def keys_and_values(
        self, memory: Float[Tensor, "sentences beams words model_dim"]
    ) -> dict[str, Tensor]:
        """Project memory vectors."""
        projected = {"keys": self.key(memory), "values": self.value(memory)}
        return {
            name: each.unflatten(-1, (self.num_heads, -1)).transpose(2, 3)
            for name, each in projected.items()
        }


class FeedbackAttention(nn.Module):
    r"""Attend with the newest token to the memory of those before it.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.

    Notes
    -----
    :math:`\mathrm{softmax}_{s<t}(q_t^\top k_s/\sqrt{d_k})`-weighted sums of the :math:`v_s`, in
    each head, then joined by W^O. A layer has only its query and output projections. A word is
    not in its own memory, which is made of the layers above; the first word finds the sum over
    nothing, which is zero, and goes on by its residual connection.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.num_heads = options.num_heads
        self.scale = score_scale(options.head_key_dim, options.scaled)
        bias, width = options.attention_bias, options.model_dim
        self.query = nn.Linear(width, self.num_heads * options.head_key_dim, bias=bias)
        self.output = nn.Linear(self.num_heads * options.head_value_dim, width, bias=bias)
        self.dropout = Dropout(options.attention_dropout)
        self.observer: Observer | None = None

    def forward(
        self,
        states: Float[Tensor, "rows 1 model_dim"],
        past: KeysAndValues,
        num_places: int,
    ) -> Float[Tensor, "rows 1 model_dim"]:
        """Attend to the memory.

        Parameters
        ----------
        states : Float[Tensor, "rows 1 model_dim"]
            The newest word of each hypothesis.
        past : KeysAndValues
            Those before it.
        num_places : int
            How many keys an observer is shown; those of words not yet remembered have weight zero.
        """
        query = self.query(states).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        weights = (query @ past.keys.transpose(-2, -1) * self.scale).softmax(dim=-1)
        if self.observer is not None:
            num_past = weights.size(-1)
            weights = self.observer(functional.pad(weights, (0, num_places - num_past)))
            weights = weights[..., :num_past]
        return self.output((self.dropout(weights) @ past.values).transpose(1, 2).flatten(-2))


class FeedbackLayer(nn.Module):
    """Attention to the memory, cross-attention, feed-forward.

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.self_attention = FeedbackAttention(options)
        self.self_attention_norm = make_add_and_norm(options)
        self.cross_attention = make_cross_attention(options)
        self.cross_attention_norm = make_add_and_norm(options)
        self.feed_forward = make_feed_forward(options)
        self.feed_forward_norm = make_add_and_norm(options)

    def forward(
        self,
        states: Float[Tensor, "sentences beams model_dim"],
        past: KeysAndValues,
        source: KeysAndValues,
        source_mask: Mask,
        num_places: int,
    ) -> Float[Tensor, "sentences beams model_dim"]:
        """Apply the layer to the newest token of each hypothesis."""

        def attend_to_past(x: Tensor) -> Tensor:
            rows = x.flatten(0, 1).unsqueeze(1)
            return self.self_attention(rows, past, num_places).view_as(x)

        states = self.self_attention_norm(states, attend_to_past)
        states = self.cross_attention_norm(
            states, lambda x: self.cross_attention(x, source, source_mask)
        )
        return self.feed_forward_norm(states, self.feed_forward)


class FeedbackTransformer(nn.Module):
    """The Transformer's encoder, and a decoder whose layers share one memory.

    Parameters
    ----------
    options : TransformerOptions
        Its shape.
    vocabulary : Vocabulary
        Its subwords.

    Notes
    -----
    The lowest layer sees what the highest said of the word before, as in a recurrent network, so
    that training too goes word by word: n steps one after another where the Transformer has one.
    In exchange the cache holds one key and one value a word, not one a layer. Training keeps
    O(n²·d) numbers, since each step holds the memory as it then was.
    """

    def __init__(self, options: TransformerOptions, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.pad_id = vocabulary.pad_id
        self.source_embedding, self.target_embedding, self.output = make_embeddings(
            options, vocabulary
        )
        self.encoder: Sequence[EncoderLayer] = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(options) for _ in range(options.num_encoder_layers)
        )
        self.decoder: Sequence[FeedbackLayer] = nn.ModuleList(  # type: ignore[assignment]
            FeedbackLayer(options) for _ in range(options.num_decoder_layers)
        )
        self.feedback = FeedbackMemory(options)
        self.encoder_norm = make_final_norm(options)
        self.decoder_norm = make_final_norm(options)
        self._initialise()

    @torch.no_grad()
    def _initialise(self) -> None:
        """Initialise as the Transformer; the memory starts as the layers' mean."""
        initialise_transformer(self)
        self.feedback.layer_weights.zero_()

    def forward(self, batch: Batch) -> Output:
        """Run teacher forcing: the hidden state of every target position."""
        num_words = batch.target.ids.size(1)
        state = self.start(self.encode(batch.source), num_words)
        source_mask = Mask(key_lengths=batch.source.lengths)
        embedded = self.target_embedding(
            batch.target.shifted(self.pad_id), lengths=batch.source.lengths
        )
        hidden = []
        for word in embedded.split(1, dim=1):
            states, state = self._read(word, state, source_mask, num_words)
            hidden.append(states)
        return Output(torch.cat(hidden, dim=1), None)

    def encode(self, source: Sequences) -> Memory:
        """Encode the source sentences."""
        states = self.source_embedding(source.read_ids, lengths=source.lengths)
        for layer in self.encoder:
            states = layer(states, source.lengths)
        if self.encoder_norm is not None:
            states = self.encoder_norm(states)
        return Memory(states, source.lengths)

    def start(self, memory: Memory, capacity: int) -> HypothesisState:
        """Start one hypothesis for each sentence.

        Returns
        -------
        HypothesisState
            Before the first word: `keys` and `values` of no words, and those of the source.
        """
        del capacity
        source = {"source_lengths": memory.lengths}
        for index, layer in enumerate(self.decoder):
            known = layer.cross_attention.keys_and_values(memory.hidden)
            source[f"source_keys_{index}"], source[f"source_values_{index}"] = known
        nothing = memory.hidden[:, None, :0]
        return HypothesisState(hypotheses=self.feedback.keys_and_values(nothing), sentences=source)

    def step(
        self, tokens: Int[Tensor, "sentences beams"], state: HypothesisState
    ) -> tuple[Float[Tensor, "sentences beams model_dim"], HypothesisState]:
        """Decode one more token of each hypothesis."""
        lengths = state.sentences["source_lengths"]
        embedded = self.target_embedding(
            tokens.flatten().unsqueeze(1),
            state.length,
            lengths[:, None].expand_as(tokens).flatten(),
        )
        words = embedded.view(*tokens.shape, -1)
        return self._read(words, state, Mask(key_lengths=lengths), state.length + 1)

    def _read(
        self, words: Tensor, state: HypothesisState, source_mask: Mask, num_places: int
    ) -> tuple[Tensor, HypothesisState]:
        """Run embedded tokens through all layers, and add them to the memory."""
        keys, values = state.hypotheses["keys"], state.hypotheses["values"]
        past = KeysAndValues(keys.flatten(0, 1), values.flatten(0, 1))
        layers = [words]
        for index, layer in enumerate(self.decoder):
            source = KeysAndValues(
                state.sentences[f"source_keys_{index}"], state.sentences[f"source_values_{index}"]
            )
            layers.append(layer(layers[-1], past, source, source_mask, num_places))
        new = self.feedback.keys_and_values(self.feedback(layers))
        longer = {
            name: torch.cat([state.hypotheses[name], each], dim=3) for name, each in new.items()
        }
        hidden = layers[-1]
        if self.decoder_norm is not None:
            hidden = self.decoder_norm(hidden)
        return hidden, state.after(**longer)
