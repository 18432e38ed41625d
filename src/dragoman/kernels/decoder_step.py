"""One word more of every hypothesis, through all layers of a decoder, in one call on a CPU.

A step is some hundreds of small operations. Asked for by Python one after the other, they take
longer than the products of a single sentence, and threads that translate side by side wait for one
another to ask. So the functions here are written for `dragoman.kernels.scripts`.
"""

from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.eight_bits import LARGEST_ACTIVATION, SMALLEST
from dragoman.kernels.activations import activate

PackedMatrix = torch.classes.quantized.LinearPackedParamsBase


class Matrix(NamedTuple):
    """A matrix of eight-bit numbers packed by FBGEMM, or one in full precision; and its bias."""

    packed: Optional[PackedMatrix]  # type: ignore[valid-type]  # noqa: UP045
    weight: Tensor
    bias: Tensor | None


class Norm(NamedTuple):
    """A layer normalisation; without a bias, one by the root mean square."""

    weight: Tensor
    bias: Tensor | None
    epsilon: float


class Layer(NamedTuple):
    """A layer: its attention to the past, that to the source, and its feed-forward layer.

    Matrices that read the same vectors are side by side: query, key and value of the first
    attention, and the inner ones of a gated feed-forward layer.
    """

    joined: Matrix
    own_output: Matrix
    query: Matrix
    source_output: Matrix
    inner: Matrix
    outer: Matrix
    own_norm: Norm
    source_norm: Norm
    feed_norm: Norm


class Decoder(NamedTuple):
    """A decoder: its layers, and what they have in common."""

    layers: list[Layer]
    num_heads: int
    scale: float
    is_norm_first: bool
    activation: str


class Caches(NamedTuple):
    """Keys and values of words so far and of the sources.

    Those of words so far are [layers, places, rows, heads, width], those of the sources
    [layers, sentences, heads, places, width].
    """

    keys: Tensor
    values: Tensor
    source_keys: Tensor
    source_values: Tensor


def multiply(
    states: Tensor,
    matrix: Matrix,
    limit: int = LARGEST_ACTIVATION,
    smallest: float = SMALLEST,
) -> Tensor:
    """Multiply vectors by a matrix.

    Parameters
    ----------
    states : Tensor
        One vector a row.
    matrix : Matrix
        The matrix.
    limit : int
        The largest whole number that stands for an entry.
    smallest : float
        What an entry is divided by at least.

    Returns
    -------
    Tensor
        The products and the bias, in float32. In eight bits, each vector is divided by its largest
        entry and rounded, so that its result depends on it alone.
    """
    packed = matrix.packed
    if packed is None:
        return functional.linear(states, matrix.weight, matrix.bias)
    largest = states.abs().amax([1], True).clamp_min_(smallest)
    found = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
        states / largest, 1 / limit, limit + 1, packed
    )
    bias = matrix.bias
    if bias is None:
        return found.mul_(largest)
    return torch.addcmul(bias, found, largest, out=found)


def normalise(states: Tensor, norm: Norm) -> Tensor:
    """Normalise vectors.

    Parameters
    ----------
    states : Tensor
        One vector a row.
    norm : Norm
        How.

    Returns
    -------
    Tensor
        The vectors, normalised.
    """
    shape = norm.weight.shape
    if norm.bias is None:
        return functional.rms_norm(states, shape, norm.weight, norm.epsilon)
    return functional.layer_norm(states, shape, norm.weight, norm.bias, norm.epsilon)


def attend_to_past(
    states: Tensor, layer: Layer, num_heads: int, scale: float, keys: Tensor, values: Tensor
) -> Tensor:
    """Write down keys and values of the newest words, and let them attend to all words so far.

    Parameters
    ----------
    states : Tensor
        The newest words, one row a hypothesis.
    layer : Layer
        The layer.
    num_heads : int
        Heads.
    scale : float
        What scores are multiplied by.
    keys : Tensor
        Of all words so far, the newest included, [places, rows, heads, width]; those are written.
    values : Tensor
        Likewise.

    Returns
    -------
    Tensor
        What each found.
    """
    rows, key_dim, value_dim = len(states), keys.size(3), values.size(3)
    width = num_heads * key_dim
    joined = multiply(states, layer.joined)
    query = joined[:, :width].reshape(rows * num_heads, 1, key_dim)
    keys[-1] = joined[:, width : 2 * width].view(rows, num_heads, key_dim)
    values[-1] = joined[:, 2 * width :].view(rows, num_heads, value_dim)
    scores = torch.bmm(query, keys.flatten(1, 2).permute(1, 2, 0)).mul_(scale)
    found = torch.bmm(scores.softmax(-1), values.flatten(1, 2).transpose(0, 1))
    return multiply(found.view(rows, num_heads * value_dim), layer.own_output)


def attend_to_source(
    states: Tensor, layer: Layer, scale: float, keys: Tensor, values: Tensor, mask: Tensor
) -> Tensor:
    """Let the newest words of each sentence's hypotheses look at its source.

    Parameters
    ----------
    states : Tensor
        The newest words, one row a hypothesis.
    layer : Layer
        The layer.
    scale : float
        What scores are multiplied by.
    keys : Tensor
        Of the sources, [sentences, heads, places, width].
    values : Tensor
        Likewise.
    mask : Tensor
        What is added to scores, [sentences, 1, 1, places].

    Returns
    -------
    Tensor
        What each found.
    """
    sentences, num_heads, places, key_dim = keys.shape
    query = multiply(states, layer.query).view(sentences, -1, num_heads, key_dim).transpose(1, 2)
    beams = query.size(2)
    scores = torch.bmm(query.reshape(-1, beams, key_dim), keys.flatten(0, 1).transpose(1, 2))
    scores = torch.add(mask, scores.view(sentences, num_heads, beams, places), alpha=scale)
    weights = scores.softmax(-1).view(-1, beams, places)
    found = torch.bmm(weights, values.flatten(0, 1)).view(sentences, num_heads, beams, -1)
    return multiply(found.transpose(1, 2).reshape(len(states), -1), layer.source_output)


def feed_forward(states: Tensor, layer: Layer, activation: str) -> Tensor:
    """Apply a feed-forward layer.

    Parameters
    ----------
    states : Tensor
        One vector a row.
    layer : Layer
        The layer.
    activation : str
        What happens between its matrices, as `dragoman.models.feed_forward` names it.

    Returns
    -------
    Tensor
        The vectors, transformed.
    """
    inner = multiply(states, layer.inner)
    gate: Tensor | None = None
    if activation == "relu":
        inner = inner.relu_()
    elif activation in ("swiglu", "geglu"):
        inner, gate = inner.chunk(2, dim=-1)
    return multiply(activate(inner, gate, activation), layer.outer)


def read_word(
    states: Tensor, length: int, mask: Tensor, decoder: Decoder, caches: Caches
) -> Tensor:
    """Let the newest word of each hypothesis go through all layers.

    Parameters
    ----------
    states : Tensor
        Their vectors, one row a hypothesis.
    length : int
        Words read before.
    mask : Tensor
        What is added to scores of the source.
    decoder : Decoder
        The decoder.
    caches : Caches
        Of which those of words so far are written.

    Returns
    -------
    Tensor
        What the last layer says, not yet normalised if norms stand before the layers.
    """
    scale, end = decoder.scale, length + 1
    for index, layer in enumerate(decoder.layers):
        keys, values = caches.keys[index, :end], caches.values[index, :end]
        source_keys, source_values = caches.source_keys[index], caches.source_values[index]
        if decoder.is_norm_first:
            asked = normalise(states, layer.own_norm)
            states = states + attend_to_past(asked, layer, decoder.num_heads, scale, keys, values)
            asked = normalise(states, layer.source_norm)
            states = states + attend_to_source(
                asked, layer, scale, source_keys, source_values, mask
            )
            asked = normalise(states, layer.feed_norm)
            states = states + feed_forward(asked, layer, decoder.activation)
        else:
            found = attend_to_past(states, layer, decoder.num_heads, scale, keys, values)
            states = normalise(states + found, layer.own_norm)
            found = attend_to_source(states, layer, scale, source_keys, source_values, mask)
            states = normalise(states + found, layer.source_norm)
            found = feed_forward(states, layer, decoder.activation)
            states = normalise(states + found, layer.feed_norm)
    return states
