"""One word more of every hypothesis, through all layers of a decoder, in one call on a CPU.

A step is some hundreds of small operations. Asked for by Python one after the other, they take
longer than the products of a single sentence, and threads that translate side by side wait for one
another to ask. So the functions here are written for `dragoman.kernels.scripts`.
"""

from typing import NamedTuple, Optional

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.eight_bits import SMALLEST
from dragoman.kernels.activations import activate
from dragoman.quantised import LARGEST_ACTIVATION

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
    scale: float
    is_norm_first: bool
    activation: str


class Caches(NamedTuple):
    """Keys and values of words so far and of the sources.

    All are [layers, sentences, heads, places, width]. Of each, what attention may look at is a
    tensor that is added to scores, [sentences, 1, hypotheses or 1, places]. Words so far fill the
    first `filled` places, the newest words among them.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    filled: int
    source_keys: Tensor
    source_values: Tensor
    source_mask: Tensor


def largest_entries(
    states: Tensor, is_rectified: bool = False, smallest: float = SMALLEST
) -> Tensor:
    """Find what each vector is divided by before it is rounded.

    Parameters
    ----------
    states : Tensor
        One vector a row.
    is_rectified : bool
        Whether no entry is negative.
    smallest : float
        What an entry is divided by at least.

    Returns
    -------
    Tensor
        The largest entry of each, without its sign.
    """
    sizes = states if is_rectified else states.abs()
    return sizes.amax([1], True).clamp_min_(smallest)


def restore(found: Tensor, largest: Tensor, bias: Tensor | None) -> Tensor:
    """Make products of divided vectors those of the vectors, and add the bias.

    Parameters
    ----------
    found : Tensor
        The products, which are overwritten.
    largest : Tensor
        What each vector was divided by.
    bias : Tensor | None
        What is added; None: nothing.

    Returns
    -------
    Tensor
        The products of the vectors.
    """
    if bias is None:
        return found.mul_(largest)
    return torch.addcmul(bias, found, largest, out=found)


def multiply(
    states: Tensor,
    matrix: Matrix,
    is_rectified: bool = False,
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
    is_rectified : bool
        Whether no entry is negative.
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
    largest = largest_entries(states, is_rectified, smallest)
    found = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
        states / largest, 1 / limit, limit + 1, packed
    )
    return restore(found, largest, matrix.bias)


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


def look(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Let the hypotheses of each sentence look at what the sentence remembers.

    Parameters
    ----------
    query : Tensor
        Of the newest words, [sentences, hypotheses, heads, width].
    keys : Tensor
        Of the sentences, [sentences, heads, places, width].
    values : Tensor
        Likewise.
    mask : Tensor
        What is added to scores, [sentences, 1, hypotheses or 1, places].
    scale : float
        What scores are multiplied by before.

    Returns
    -------
    Tensor
        What each found, [rows, heads × width], in float32; products are in the precision of keys
        and values.
    """
    sentences, beams, num_heads = query.size(0), query.size(1), query.size(2)
    asked = query.to(keys.dtype).transpose(1, 2).flatten(0, 1)
    scores = torch.bmm(asked, keys.flatten(0, 1).transpose(1, 2))
    scores = torch.add(mask, scores.view(sentences, num_heads, beams, -1), alpha=scale)
    weights = scores.softmax(-1).to(values.dtype).flatten(0, 1)
    found = torch.bmm(weights, values.flatten(0, 1)).view(sentences, num_heads, beams, -1)
    return found.transpose(1, 2).reshape(sentences * beams, -1).to(query.dtype)


def attend_to_past(
    states: Tensor,
    layer: Layer,
    scale: float,
    keys: Tensor,
    values: Tensor,
    mask: Tensor,
    filled: int,
) -> Tensor:
    """Write down keys and values of the newest words, and let them look at their ancestors.

    Parameters
    ----------
    states : Tensor
        The newest words, one row a hypothesis.
    layer : Layer
        The layer.
    scale : float
        What scores are multiplied by.
    keys : Tensor
        Of words so far, [sentences, heads, places, width]; those of the newest are written.
    values : Tensor
        Likewise.
    mask : Tensor
        What is added to scores, [sentences, 1, hypotheses, places].
    filled : int
        The newest words are written before this place.

    Returns
    -------
    Tensor
        What each found.
    """
    sentences, num_heads, key_dim = keys.size(0), keys.size(1), keys.size(3)
    beams, value_dim, width = mask.size(2), values.size(3), num_heads * key_dim
    joined = multiply(states, layer.joined)
    query = joined[:, :width].view(sentences, beams, num_heads, key_dim)
    key = joined[:, width : 2 * width].view(sentences, beams, num_heads, key_dim)
    value = joined[:, 2 * width :].view(sentences, beams, num_heads, value_dim)
    keys[:, :, filled - beams : filled] = key.transpose(1, 2)
    values[:, :, filled - beams : filled] = value.transpose(1, 2)
    return multiply(look(query, keys, values, mask, scale), layer.own_output)


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
    query = multiply(states, layer.query).view(keys.size(0), -1, keys.size(1), keys.size(3))
    return multiply(look(query, keys, values, mask, scale), layer.source_output)


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
    return multiply(activate(inner, gate, activation), layer.outer, activation == "relu")


def read_word(states: Tensor, decoder: Decoder, caches: Caches) -> Tensor:
    """Let the newest word of each hypothesis go through all layers.

    Parameters
    ----------
    states : Tensor
        Their vectors, one row a hypothesis.
    decoder : Decoder
        The decoder.
    caches : Caches
        Of which those of words so far are written.

    Returns
    -------
    Tensor
        What the last layer says, not yet normalised if norms stand before the layers.
    """
    scale, mask, filled, source_mask = (
        decoder.scale, caches.mask, caches.filled, caches.source_mask,
    )  # fmt: skip
    for index, layer in enumerate(decoder.layers):
        keys, values = caches.keys[index], caches.values[index]
        source_keys, source_values = caches.source_keys[index], caches.source_values[index]
        if decoder.is_norm_first:
            asked = normalise(states, layer.own_norm)
            states = states + attend_to_past(asked, layer, scale, keys, values, mask, filled)
            asked = normalise(states, layer.source_norm)
            states = states + attend_to_source(
                asked, layer, scale, source_keys, source_values, source_mask
            )
            asked = normalise(states, layer.feed_norm)
            states = states + feed_forward(asked, layer, decoder.activation)
        else:
            found = attend_to_past(states, layer, scale, keys, values, mask, filled)
            states = normalise(states + found, layer.own_norm)
            found = attend_to_source(states, layer, scale, source_keys, source_values, source_mask)
            states = normalise(states + found, layer.source_norm)
            found = feed_forward(states, layer, decoder.activation)
            states = normalise(states + found, layer.feed_norm)
    return states
