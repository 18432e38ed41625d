"""Options of the Transformer, and checks that all families share."""

from dataclasses import dataclass
from typing import Any, Literal, get_args, get_type_hints

from dragoman.errors import OptionError
from dragoman.options import option, require

TYING = "one matrix for source, target and output; for target and output; or none shared"


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """The Transformer (Vaswani et al., 2017); the defaults are the paper's base model."""

    family: Literal["transformer"] = option("transformer", "the kind of model")
    num_encoder_layers: int = option(6, "layers of the encoder (the paper's N)")
    num_decoder_layers: int = option(6, "layers of the decoder")
    model_dim: int = option(512, "width of the residual stream (d_model)")
    feed_forward_dim: int = option(2048, "inner width of the feed-forward layers (d_ff)")
    feed_forward: Literal["relu", "swish", "gelu", "gelu-sigmoid", "swiglu", "geglu"] = option(
        "relu",
        "the paper's, or smoother, or gated; a gate is a third matrix, so 2/3 of the width costs "
        "the same",
    )
    num_heads: int = option(8, "attention heads (h)")
    key_dim: int | None = option(
        None, "width of a head's queries and keys (d_k); off: model_dim / h"
    )
    value_dim: int | None = option(None, "width of a head's values (d_v); off: model_dim / h")
    attention_bias: bool = option(False, "biases in the projections of attention")
    scaled: bool = option(True, "divide the scores of attention by √d_k")
    decoder_mask: bool = option(
        True,
        "hide later words from the decoder; off: to show what becomes of a model without",
    )
    residual: bool = option(
        True, "add what goes into a sub-layer to what comes out; off: to show what that is good for"
    )
    encoder_attention: Literal["full", "restricted", "fastformer"] = option(
        "full", "self-attention of the encoder"
    )
    decoder_attention: Literal["full", "restricted", "fastformer", "feedback", "ssru"] = option(
        "full", "self-attention of the decoder; ssru: a recurrent cell in its place, for speed"
    )
    window: int = option(32, "words that restricted attention sees (r)")
    norm: Literal["layer", "rms", "batch", "batch-per-step"] = option(
        "layer", "what is normalised: each word's vector, or each entry over the batch"
    )
    norm_position: Literal["post", "pre"] = option(
        "post", "normalise after the residual sum, as the paper does, or before the sub-layer"
    )
    norm_epsilon: float = option(1e-5, "what norms add to the variance (ε)")
    positions: Literal[
        "sinusoidal",
        "learned",
        "normalised",
        "index",
        "none",
        "rotary",
        "alibi",
        "relative",
        "marian",
    ] = option("sinusoidal", "how word order is told; marian: the sinusoids that Marian takes")
    max_positions: int = option(1024, "longest sequence of learned positions")
    num_experts: int | None = option(None, "experts of a mixture of experts; off: none")
    experts_per_token: int = option(2, "experts that each word is sent to (k)")
    balance_weight: float = option(0.01, "weight of the importance loss, and of the load loss")
    tied_embeddings: Literal["all", "target", "none"] = option("all", TYING)
    output_bias: bool = option(False, "a bias for each word in the output layer")
    source_end: bool = option(
        True, "let the encoder read the end of a sentence; off: as models of OpenNMT-py do"
    )
    dropout: float = option(0.1, "dropout on sub-layer outputs and embedding sums (P_drop)")
    attention_dropout: float = option(0.0, "dropout on the weights of attention")
    activation_dropout: float = option(0.0, "dropout within feed-forward layers")

    def __post_init__(self) -> None:
        check_counts(self, "num_encoder_layers", "num_decoder_layers", "model_dim")
        check_counts(self, "feed_forward_dim", "num_heads", "max_positions", "key_dim", "value_dim")
        check_counts(self, "window")
        check_experts(self)
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            check_share(self, name)
        epsilon = self.norm_epsilon
        require(0 < epsilon < 1, "model.norm_epsilon", epsilon, "must be above 0 and below 1")
        for name in ("key_dim", "value_dim"):
            if getattr(self, name) is None and self.model_dim % self.num_heads:
                raise OptionError(
                    f"model.num_heads is {self.num_heads}, but must divide model.model_dim "
                    f"({self.model_dim}) unless model.{name} is given"
                )
        if self.positions in ("sinusoidal", "marian") and self.model_dim % 2:
            raise OptionError(f"model.model_dim is {self.model_dim}: sinusoids need an even width")
        self._check_combination()

    def _check_combination(self) -> None:
        """Refuse combinations that do not work."""
        kinds = (self.encoder_attention, self.decoder_attention)
        in_scores = self.positions in ("rotary", "alibi", "relative")
        if in_scores and kinds != ("full", "full"):
            other = next(kind for kind in kinds if kind != "full")
            raise OptionError(
                f"model.positions is “{self.positions}”, which acts inside full attention and "
                f"cannot be combined with “{other}” attention; take sinusoidal positions"
            )
        if self.positions == "rotary" and self.head_key_dim % 2:
            raise OptionError(
                f"the width of a head's keys is {self.head_key_dim}: rotary positions turn pairs "
                "of entries, so model.key_dim must be even"
            )
        if "fastformer" in kinds and self.head_key_dim != self.head_value_dim:
            raise OptionError(
                "Fastformer multiplies queries, keys and values entry by entry: model.key_dim "
                f"({self.head_key_dim}) and model.value_dim ({self.head_value_dim}) must be equal"
            )
        if "fastformer" in kinds and self.attention_dropout:
            raise OptionError(
                f"model.attention_dropout is {self.attention_dropout}, but Fastformer has no "
                "weights of words for words to drop; take 0"
            )
        if self.num_experts is not None and (
            self.feed_forward != "relu" or self.activation_dropout
        ):
            raise OptionError(
                "model.num_experts takes the place of feed-forward layers: it goes with "
                "--feed-forward relu and --activation-dropout 0 only"
            )
        for name in ("decoder_mask", "residual"):
            if not getattr(self, name) and (kinds != ("full", "full") or self.num_experts):
                raise OptionError(
                    f"model.{name} is off, which goes with full attention and without experts "
                    "only; leave it on"
                )
        if self.decoder_attention == "feedback" and self.num_experts is not None:
            raise OptionError("model.num_experts cannot be combined with feedback memory")
        if self.decoder_attention == "feedback" and self.norm.startswith("batch"):
            raise OptionError(
                f"model.norm is “{self.norm}”, but feedback memory reads one word at a time, so "
                "there is no batch of words to normalise over; take layer or rms"
            )

    @property
    def head_key_dim(self) -> int:
        """The width d_k of one head's queries and keys."""
        return self.key_dim or self.model_dim // self.num_heads

    @property
    def head_value_dim(self) -> int:
        """The width d_v of one head's values."""
        return self.value_dim or self.model_dim // self.num_heads

    @property
    def is_recurrent(self) -> bool:
        """Whether the decoder has a recurrent cell in place of self-attention."""
        return self.decoder_attention == "ssru"

    @property
    def is_usual(self) -> bool:
        """Whether the model is built as fast paths require.

        That is, of full attention, dense feed-forward layers, and all that holds them together.
        """
        kinds = (self.encoder_attention, self.decoder_attention)
        is_whole = self.decoder_mask and self.residual
        return kinds == ("full", "full") and self.num_experts is None and is_whole

    @property
    def reads_packed(self) -> bool:
        """Whether the model can be trained on packed sentences.

        What looks beyond one word and its sentence cannot: batch normalisation, experts that share
        a batch's words among them, positions that ask for the sentence's length or act on scores.
        """
        return (
            self.is_usual
            and self.positions in ("sinusoidal", "marian", "learned", "index", "none", "rotary")
            and self.norm in ("layer", "rms")
            and self.source_end
        )

    @property
    def max_length(self) -> int | None:
        """The longest sequence the model can read or write; None: any."""
        has_end = self.positions == "learned" or self.norm == "batch-per-step"
        return self.max_positions if has_end else None


def check_counts(options: Any, *names: str) -> None:  # noqa: ANN401
    """Check that some options are at least 1, or off.

    Parameters
    ----------
    options : Any
        A model's options.
    *names : str
        Which of them.
    """
    hints = get_type_hints(type(options))
    for name in names:
        value = getattr(options, name)
        remedy = "must be ≥ 1, or off" if type(None) in get_args(hints[name]) else "must be ≥ 1"
        require(value is None or value >= 1, f"model.{name}", value, remedy)


def check_share(options: Any, name: str) -> None:  # noqa: ANN401
    """Check that an option is in [0, 1).

    Parameters
    ----------
    options : Any
        A model's options.
    name : str
        Which of them.
    """
    value = getattr(options, name)
    require(0 <= value < 1, f"model.{name}", value, "must be in [0, 1)")


def check_experts(options: Any) -> None:  # noqa: ANN401
    """Check the options of a mixture of experts.

    Parameters
    ----------
    options : Any
        A model's options.
    """
    check_counts(options, "num_experts", "experts_per_token")
    chosen, there = options.experts_per_token, options.num_experts
    few_enough = there is None or chosen <= there
    require(few_enough, "model.experts_per_token", chosen, f"there are only {there} experts")
    weight = options.balance_weight
    require(weight >= 0, "model.balance_weight", weight, "must not be negative")


def check_tying(options: Any, *, embedding_dim: int, output_dim: int) -> None:  # noqa: ANN401
    """Check that matrices which shall be one have one width.

    Parameters
    ----------
    options : Any
        A model's options.
    embedding_dim : int
        Width of the word vectors.
    output_dim : int
        Width of what the output layer reads.
    """
    if options.tied_embeddings != "none" and embedding_dim != output_dim:
        raise OptionError(
            f"model.tied_embeddings is “{options.tied_embeddings}”, but word vectors have width "
            f"{embedding_dim} and the output layer reads {output_dim}; make them equal, or give "
            "--tied-embeddings none"
        )
