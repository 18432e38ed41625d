"""What a user may say about the model."""

from dataclasses import dataclass
from typing import Literal

from dragoman.errors import OptionError
from dragoman.options import option, require


@dataclass(frozen=True, kw_only=True)
class TransformerOptions:
    """The shape of the Transformer; the defaults are the paper's base model."""

    num_encoder_layers: int = option(6, "layers of the encoder (the paper's N)")
    num_decoder_layers: int = option(6, "layers of the decoder")
    model_dim: int = option(512, "width of the residual stream (d_model)")
    feed_forward_dim: int = option(2048, "inner width of the feed-forward layers (d_ff)")
    num_heads: int = option(8, "attention heads (h)")
    key_dim: int | None = option(
        None, "width of a head's queries and keys (d_k); off: model_dim / h"
    )
    value_dim: int | None = option(None, "width of a head's values (d_v); off: model_dim / h")
    attention_bias: bool = option(False, "biases in the projections of attention")
    norm_position: Literal["post", "pre"] = option(
        "post", "normalise after the residual sum, as the paper does, or before the sub-layer"
    )
    positions: Literal["sinusoidal", "learned"] = option("sinusoidal", "how word order is told")
    max_positions: int = option(1024, "longest sequence of learned positions")
    tied_embeddings: Literal["all", "target", "none"] = option(
        "all", "one matrix for source, target and output; for target and output; or none shared"
    )
    dropout: float = option(0.1, "dropout on sub-layer outputs and embedding sums (P_drop)")

    def __post_init__(self) -> None:
        counts = ("num_encoder_layers", "num_decoder_layers", "model_dim", "feed_forward_dim")
        for name in (*counts, "num_heads", "max_positions"):
            require(getattr(self, name) >= 1, f"model.{name}", getattr(self, name), "must be ≥ 1")
        for name in ("key_dim", "value_dim"):
            width = getattr(self, name)
            require(width is None or width >= 1, f"model.{name}", width, "must be ≥ 1, or off")
            if width is None and self.model_dim % self.num_heads:
                raise OptionError(
                    f"model.num_heads is {self.num_heads}, but must divide model.model_dim "
                    f"({self.model_dim}) unless model.{name} is given"
                )
        if self.positions == "sinusoidal" and self.model_dim % 2:
            raise OptionError(f"model.model_dim is {self.model_dim}: sinusoids need an even width")
        require(0 <= self.dropout < 1, "model.dropout", self.dropout, "must be in [0, 1)")

    @property
    def head_key_dim(self) -> int:
        """The width d_k of one head's queries and keys."""
        return self.key_dim or self.model_dim // self.num_heads

    @property
    def head_value_dim(self) -> int:
        """The width d_v of one head's values."""
        return self.value_dim or self.model_dim // self.num_heads
