"""Union of the options of all model families."""

from dragoman.models.convolutional.options import ByteNetOptions, ConvS2SOptions
from dragoman.models.options import TransformerOptions
from dragoman.models.recurrent.options import (
    DeepAttOptions,
    GNMTOptions,
    LuongOptions,
    RNNsearchOptions,
    Seq2seqOptions,
)

ModelOptions = (
    TransformerOptions
    | Seq2seqOptions
    | RNNsearchOptions
    | LuongOptions
    | GNMTOptions
    | DeepAttOptions
    | ConvS2SOptions
    | ByteNetOptions
)
