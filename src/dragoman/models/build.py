"""Build a model from its options."""

from torch import nn

from dragoman.errors import OptionError
from dragoman.models.convolutional.bytenet import ByteNet
from dragoman.models.convolutional.convs2s import ConvS2S
from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.families import ModelOptions
from dragoman.models.feedback import FeedbackTransformer
from dragoman.models.interface import Vocabulary
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.deep_att import DeepAtt
from dragoman.models.recurrent.gnmt import GNMT
from dragoman.models.recurrent.luong import Luong
from dragoman.models.recurrent.options import (
    DeepAttOptions,
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)
from dragoman.models.recurrent.rnnsearch import RNNsearch
from dragoman.models.recurrent.seq2seq import Seq2seq
from dragoman.models.transformer import Transformer

Model = (
    Transformer
    | FeedbackTransformer
    | Seq2seq
    | RNNsearch
    | Luong
    | GNMT
    | DeepAtt
    | ConvS2S
    | ByteNet
)


def build_model(options: ModelOptions, vocabulary: Vocabulary) -> Model:
    """Build a model with fresh weights."""
    sizes = (vocabulary.source_size, vocabulary.target_size)
    if options.tied_embeddings == "all" and sizes[0] != sizes[1]:
        raise OptionError(
            f"model.tied_embeddings is “all”, but the vocabularies have {sizes[0]} and {sizes[1]} "
            "subwords; give --tied-embeddings target, or --joint"
        )
    match options:
        case TransformerOptions(decoder_attention="feedback"):
            return FeedbackTransformer(options, vocabulary)
        case TransformerOptions():
            return Transformer(options, vocabulary)
        case Seq2seqOptions():
            return Seq2seq(options, vocabulary)
        case RNNsearchOptions():
            return RNNsearch(options, vocabulary)
        case LuongOptions():
            return Luong(options, vocabulary)
        case GNMTOptions():
            return GNMT(options, vocabulary)
        case DeepAttOptions():
            return DeepAtt(options, vocabulary)
        case ConvS2SOptions():
            return ConvS2S(options, vocabulary)
        case ByteNetOptions():
            return ByteNet(options, vocabulary)


def count_parameters(model: nn.Module) -> int:
    """Count the trainable parameters."""
    return sum(parameter.numel() for parameter in model.parameters())
