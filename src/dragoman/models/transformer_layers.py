"""Layers of the Transformer's encoder and decoder (figure 1)."""

from torch import Tensor, nn

from dragoman.data.packed_mask import PackedMask
from dragoman.models.attention.fastformer import Fastformer
from dragoman.models.attention.mask import Mask
from dragoman.models.attention.multihead_attention import KeysAndValues, MultiheadAttention
from dragoman.models.attention.restricted_attention import RestrictedAttention
from dragoman.models.attention.score_bias import AlibiBias, RelativeBias, RotaryPositions
from dragoman.models.attention.self_attention import Cache, SelfAttention
from dragoman.models.attention.ssru import SSRU
from dragoman.models.layers.experts import Experts, Routing
from dragoman.models.layers.feed_forward import FeedForward
from dragoman.models.layers.normalisation import make_norm
from dragoman.models.layers.residual import AddAndNorm, Residual
from dragoman.models.options import TransformerOptions
from dragoman.shapes import Float, Int

RELATIVE_DISTANCE = 16


class EncoderLayer(nn.Module):
    """Encoder layer: self-attention, then feed-forward (figure 1, left).

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.self_attention = _self_attention(options, options.encoder_attention, causal=False)
        self.self_attention_norm = make_add_and_norm(options)
        self.feed_forward = _feed_forward(options)
        self.feed_forward_norm = make_add_and_norm(options)

    def forward(
        self,
        states: Float[Tensor, "batch length model_dim"],
        lengths: Int[Tensor, "batch"],
        routing: Routing | None = None,
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the layer."""
        states = self.self_attention_norm(states, lambda x: self.self_attention.attend(x, lengths))
        return self.feed_forward_norm(states, lambda x: _feed(self.feed_forward, x, routing))

    def packed(self, states: Residual, mask: PackedMask) -> Residual:
        """Apply the layer to packed sentences."""
        attention = _packable(self.self_attention)
        states = self.self_attention_norm.packed(states, lambda x: attention.packed(x, None, mask))
        return self.feed_forward_norm.packed(states, self.feed_forward)


class DecoderLayer(nn.Module):
    """Decoder layer: self-attention, cross-attention, feed-forward (figure 1, right).

    Parameters
    ----------
    options : TransformerOptions
        The model's shape.
    """

    def __init__(self, options: TransformerOptions) -> None:
        super().__init__()
        self.self_attention = _self_attention(
            options, options.decoder_attention, causal=options.decoder_mask
        )
        self.self_attention_norm = make_add_and_norm(options)
        self.cross_attention = make_cross_attention(options)
        self.cross_attention_norm = make_add_and_norm(options)
        self.feed_forward = _feed_forward(options)
        self.feed_forward_norm = make_add_and_norm(options)

    def forward(
        self,
        states: Float[Tensor, "batch length model_dim"],
        source: KeysAndValues,
        source_mask: Mask,
        routing: Routing | None = None,
        lengths: Int[Tensor, "batch"] | None = None,
    ) -> Float[Tensor, "batch length model_dim"]:
        """Apply the layer to whole sentences at once, as in training.

        A decoder that may look at later words needs to know where the padding begins.
        """
        states = self.self_attention_norm(states, lambda x: self.self_attention.attend(x, lengths))
        states = self.cross_attention_norm(
            states, lambda x: self.cross_attention(x, source, source_mask)
        )
        return self.feed_forward_norm(states, lambda x: _feed(self.feed_forward, x, routing))

    def packed(
        self,
        states: Residual,
        memory: Float[Tensor, "keys model_dim"],
        mask: PackedMask,
        source_mask: PackedMask,
    ) -> Residual:
        """Apply the layer to packed sentences."""
        own, other = _packable(self.self_attention), self.cross_attention
        states = self.self_attention_norm.packed(states, lambda x: own.packed(x, None, mask))
        states = self.cross_attention_norm.packed(
            states, lambda x: other.packed(x, memory, source_mask)
        )
        return self.feed_forward_norm.packed(states, self.feed_forward)

    def step(
        self,
        states: Float[Tensor, "rows 1 model_dim"],
        past: Cache,
        source: KeysAndValues,
        source_mask: Mask,
        length: int,
    ) -> tuple[Float[Tensor, "rows 1 model_dim"], Cache]:
        """Apply the layer to the newest token of each hypothesis.

        Notes
        -----
        Towards their own past the hypotheses are separate rows; towards the source those of one
        sentence are queries of the same row, so that its keys are stored once.
        """

        def attend_to_past(x: Tensor) -> Tensor:
            nonlocal past
            found, past = self.self_attention.step(x, past, length)
            return found

        def attend_to_source(x: Tensor) -> Tensor:
            beside = x.view(len(source.keys), -1, x.size(-1))
            return self.cross_attention(beside, source, source_mask).view_as(x)

        states = self.self_attention_norm(states, attend_to_past, length)
        states = self.cross_attention_norm(states, attend_to_source, length)
        return self.feed_forward_norm(states, self.feed_forward, length), past


def _packable(attention: SelfAttention) -> MultiheadAttention:
    """Narrow the type of a self-attention that reads packed sentences."""
    assert isinstance(attention, MultiheadAttention)
    return attention


def make_final_norm(options: TransformerOptions) -> nn.Module | None:
    """Make the norm at the end of a pre-norm stack."""
    if options.norm_position == "post":
        return None
    return _make_norm(options)


def _self_attention(options: TransformerOptions, kind: str, *, causal: bool) -> SelfAttention:
    """Make the self-attention that the options name: “encoder_attention” or “decoder_attention”."""
    if kind == "ssru":
        return SSRU(options.model_dim)
    dims = {"key_dim": options.head_key_dim, "value_dim": options.head_value_dim}
    if kind == "fastformer":
        return Fastformer(
            options.model_dim, options.num_heads, head_dim=options.head_key_dim, causal=causal
        )
    if kind == "restricted":
        return RestrictedAttention(
            options.model_dim,
            options.num_heads,
            **dims,
            bias=options.attention_bias,
            scaled=options.scaled,
            window=options.window,
            causal=causal,
            dropout=options.attention_dropout,
        )
    assert kind == "full", kind
    score_bias: AlibiBias | RelativeBias | None = None
    if options.positions == "alibi":
        score_bias = AlibiBias(options.num_heads)
    elif options.positions == "relative":
        score_bias = RelativeBias(
            options.num_heads, options.head_key_dim, RELATIVE_DISTANCE, scaled=options.scaled
        )
    is_rotary = options.positions == "rotary"
    return MultiheadAttention(
        options.model_dim,
        options.num_heads,
        **dims,
        bias=options.attention_bias,
        scaled=options.scaled,
        causal=causal,
        score_bias=score_bias,
        rotation=RotaryPositions(options.head_key_dim) if is_rotary else None,
        dropout=options.attention_dropout,
    )


def make_cross_attention(options: TransformerOptions) -> MultiheadAttention:
    """Make a cross-attention, without position bias."""
    return MultiheadAttention(
        options.model_dim,
        options.num_heads,
        key_dim=options.head_key_dim,
        value_dim=options.head_value_dim,
        bias=options.attention_bias,
        scaled=options.scaled,
        dropout=options.attention_dropout,
    )


def make_feed_forward(options: TransformerOptions) -> FeedForward:
    """Make one feed-forward layer."""
    return FeedForward(
        options.model_dim,
        options.feed_forward_dim,
        kind=options.feed_forward,
        dropout=options.activation_dropout,
    )


def _feed_forward(options: TransformerOptions) -> FeedForward | Experts:
    """Make a feed-forward layer, or a mixture of experts."""
    if options.num_experts is None:
        return make_feed_forward(options)
    return Experts(
        options.model_dim,
        options.feed_forward_dim,
        options.num_experts,
        options.experts_per_token,
        options.balance_weight,
    )


def _feed(layer: FeedForward | Experts, states: Tensor, routing: Routing | None) -> Tensor:
    """Apply a feed-forward layer; only experts use the routing."""
    return layer(states, routing) if isinstance(layer, Experts) else layer(states)


def make_add_and_norm(options: TransformerOptions) -> AddAndNorm:
    """Make one residual connection."""
    norm = _make_norm(options)
    return AddAndNorm(
        norm, dropout=options.dropout, position=options.norm_position, adds=options.residual
    )


def _make_norm(options: TransformerOptions) -> nn.Module:
    """Make the normalisation that the options name."""
    return make_norm(options.norm, options.model_dim, options.max_positions, options.norm_epsilon)
