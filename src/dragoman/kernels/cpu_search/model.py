"""A Transformer as compiled functions read it; nothing here is compiled."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.weight_layout import Matrix

ACTIVATIONS = ("relu", "swish", "gelu", "gelu-sigmoid", "swiglu", "geglu")


class Shape(NamedTuple):
    """What layers have in common; the activation is a place in `ACTIVATIONS`.

    Where the decoder is recurrent, a cell takes the place of its self-attention. `cached` is an
    empty array of the type in which keys and values are kept.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    scale: float
    is_norm_first: bool
    is_centred: bool
    epsilon: float
    activation: int
    word_scale: float
    is_recurrent: bool
    cached: np.ndarray


def make_cached(is_rounded: bool) -> np.ndarray:
    """Make an empty array of the type in which keys and values are kept."""
    return np.empty(0, np.uint16 if is_rounded else np.float32)


class Encoder(NamedTuple):
    """All layers of the encoder: every matrix is a stack of one a layer.

    `norms` is [layers, 2, 2, width], the last but one for weight and bias; `final` is the last
    norm, which counts only where norms stand before the sub-layers.
    """

    joined: Matrix
    output: Matrix
    inner: Matrix
    outer: Matrix
    norms: np.ndarray
    final: np.ndarray


class Decoder(NamedTuple):
    """All layers of the decoder, likewise; `memory` makes keys and values of sources.

    Where a cell takes the place of self-attention, `joined` makes its gate and what is added, and
    `output` is not used.
    """

    joined: Matrix
    output: Matrix
    query: Matrix
    memory: Matrix
    source_output: Matrix
    inner: Matrix
    outer: Matrix
    norms: np.ndarray
    final: np.ndarray


class Model(NamedTuple):
    """A whole model: words of source, target and output, which may be one matrix, and layers."""

    source_words: Matrix
    target_words: Matrix
    output: Matrix
    positions: np.ndarray
    encoder: Encoder
    decoder: Decoder
    shape: Shape
