"""Data types of a Transformer for compiled functions; nothing here is compiled."""

from typing import NamedTuple

import numpy as np

from dragoman.kernels.cpu_search.weight_layout import Matrix

ACTIVATIONS = ("relu", "swish", "gelu", "gelu-sigmoid", "swiglu", "geglu")


class Shape(NamedTuple):
    """Hyper-parameters shared by all layers; `activation` is an index into `ACTIVATIONS`.

    A recurrent decoder has a cell in place of self-attention. `cached` is an empty array of the
    type of keys and values.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    scale: float
    is_norm_first: bool
    is_centred: bool
    epsilon: float
    activation: int
    embedding_scale: float
    is_recurrent: bool
    cached: np.ndarray


def make_cached(is_rounded: bool) -> np.ndarray:
    """Make an empty array of the type of keys and values."""
    return np.empty(0, np.uint16 if is_rounded else np.float32)


class Encoder(NamedTuple):
    """All layers of the encoder: every matrix is stacked over layers.

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
    """All layers of the decoder, likewise; `memory` projects sources to keys and values.

    With a recurrent cell, `joined` computes its gates and update, and `output` is unused.
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
    """A whole model: embeddings, output matrix (which may be one matrix) and layers."""

    source_embedding: Matrix
    target_embedding: Matrix
    output: Matrix
    positions: np.ndarray
    encoder: Encoder
    decoder: Decoder
    shape: Shape
