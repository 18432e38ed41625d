"""Options of recurrent models; the defaults are the published shapes."""

from dataclasses import dataclass
from typing import Literal

from dragoman.models.options import TYING, check_counts, check_experts, check_share, check_tying
from dragoman.options import option, require

DROPOUT = "dropout on what a layer reads from below and on what the output layer reads"
EMBEDDING = "width of the word vectors; off: model_dim"


@dataclass(frozen=True, kw_only=True)
class Seq2seqOptions:
    """The plain encoder–decoder (Sutskever et al., 2014): one vector carries the sentence."""

    family: Literal["seq2seq"] = option("seq2seq", "the kind of model")
    cell: Literal["rnn", "gru", "lstm"] = option("lstm", "what a layer repeats at each word")
    num_layers: int = option(4, "layers of the encoder, and of the decoder")
    model_dim: int = option(1000, "cells of a layer")
    embedding_dim: int | None = option(None, EMBEDDING)
    reverse_source: bool = option(True, "read the source sentence from its end")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.0, DROPOUT)

    def __post_init__(self) -> None:
        check_counts(self, "num_layers", "model_dim", "embedding_dim")
        check_share(self, "dropout")
        check_tying(self, embedding_dim=self.word_dim, output_dim=self.model_dim)

    @property
    def word_dim(self) -> int:
        """The width of the word vectors."""
        return self.embedding_dim or self.model_dim

    @property
    def max_length(self) -> None:
        """There is no longest sentence."""
        return


@dataclass(frozen=True, kw_only=True)
class RNNsearchOptions:
    """Learning to align and translate (Bahdanau et al., 2015): the first attention."""

    family: Literal["rnnsearch"] = option("rnnsearch", "the kind of model")
    model_dim: int = option(1000, "cells of the decoder, and of each direction of the encoder")
    embedding_dim: int | None = option(620, EMBEDDING)
    alignment_dim: int | None = option(None, "inner width of the alignment model; off: model_dim")
    maxout_dim: int = option(500, "width of the maxout layer before the output")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.0, DROPOUT)

    def __post_init__(self) -> None:
        check_counts(self, "model_dim", "embedding_dim", "alignment_dim", "maxout_dim")
        check_share(self, "dropout")
        check_tying(self, embedding_dim=self.word_dim, output_dim=self.maxout_dim)

    @property
    def word_dim(self) -> int:
        """The width of the word vectors."""
        return self.embedding_dim or self.model_dim

    @property
    def max_length(self) -> None:
        """There is no longest sentence."""
        return


@dataclass(frozen=True, kw_only=True)
class LuongOptions:
    """Global and local attention over an LSTM stack (Luong et al., 2015)."""

    family: Literal["luong"] = option("luong", "the kind of model")
    num_layers: int = option(4, "layers of the encoder, and of the decoder")
    model_dim: int = option(1000, "cells of a layer")
    embedding_dim: int | None = option(None, EMBEDDING)
    score: Literal["dot", "general", "concat", "location"] = option(
        "general", "how a target state is matched with a source state"
    )
    attention_span: Literal["global", "local-m", "local-p"] = option(
        "global", "look at all source words, at those beside the same place, or a predicted place"
    )
    half_width: int = option(10, "source words to each side that local attention sees (D)")
    input_feeding: bool = option(True, "tell the next step what attention found at this one")
    reverse_source: bool = option(True, "read the source sentence from its end")
    max_positions: int = option(1024, "longest source sentence of the score “location”")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.2, DROPOUT)

    def __post_init__(self) -> None:
        check_counts(self, "num_layers", "model_dim", "embedding_dim", "half_width")
        check_counts(self, "max_positions")
        check_share(self, "dropout")
        check_tying(self, embedding_dim=self.word_dim, output_dim=self.model_dim)

    @property
    def word_dim(self) -> int:
        """The width of the word vectors."""
        return self.embedding_dim or self.model_dim

    @property
    def max_length(self) -> int | None:
        """The longest source sentence: the score “location” has a row for each place."""
        return self.max_positions if self.score == "location" else None


@dataclass(frozen=True, kw_only=True)
class GNMTOptions:
    """Google's deep residual LSTM stack (Wu et al., 2016), with experts between layers if asked."""

    family: Literal["gnmt"] = option("gnmt", "the kind of model")
    num_encoder_layers: int = option(8, "layers of the encoder, the lowest of them bidirectional")
    num_decoder_layers: int = option(8, "layers of the decoder")
    model_dim: int = option(1024, "cells of a layer")
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.2, DROPOUT)
    num_experts: int | None = option(None, "experts of a mixture of experts; off: none")
    experts_per_token: int = option(2, "experts that each word is sent to (k)")
    expert_dim: int = option(2048, "inner width of an expert between the layers")
    balance_weight: float = option(0.01, "weight of the importance loss, and of the load loss")

    def __post_init__(self) -> None:
        check_counts(self, "num_encoder_layers", "num_decoder_layers", "model_dim", "expert_dim")
        check_experts(self)
        check_share(self, "dropout")
        if self.num_experts is not None:
            enough = self.num_encoder_layers >= 2 and self.num_decoder_layers >= 2
            layers = f"{self.num_encoder_layers} and {self.num_decoder_layers}"
            require(enough, "model.num_encoder_layers and model.num_decoder_layers", layers,
                    "experts stand between two layers, so both need at least 2")  # fmt: skip

    @property
    def max_length(self) -> None:
        """There is no longest sentence."""
        return


@dataclass(frozen=True, kw_only=True)
class DeepAttOptions:
    """Deep recurrent models with fast-forward connections (Zhou et al., 2016)."""

    family: Literal["deep-att"] = option("deep-att", "the kind of model")
    num_encoder_layers: int = option(9, "layers of each of the encoder's two columns")
    num_decoder_layers: int = option(7, "layers of the decoder")
    model_dim: int = option(512, "cells of a layer")
    embedding_dim: int | None = option(256, EMBEDDING)
    tied_embeddings: Literal["all", "target", "none"] = option("none", TYING)
    dropout: float = option(0.1, DROPOUT)

    def __post_init__(self) -> None:
        check_counts(self, "num_encoder_layers", "num_decoder_layers", "model_dim", "embedding_dim")
        check_share(self, "dropout")
        check_tying(self, embedding_dim=self.word_dim, output_dim=self.model_dim)

    @property
    def word_dim(self) -> int:
        """The width of the word vectors."""
        return self.embedding_dim or self.model_dim

    @property
    def max_length(self) -> None:
        """There is no longest sentence."""
        return
