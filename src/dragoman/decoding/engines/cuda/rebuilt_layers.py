"""Layers of a rebuilt Transformer: fused projections and caches updated in place."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import pad

from dragoman.kernels.cuda_search.beam_attention import Heads
from dragoman.models.attention.multihead_attention import KeysAndValues, MultiheadAttention
from dragoman.models.attention.scaled_dot_product_attention import attend, score_scale
from dragoman.models.layers.feed_forward import FeedForward, activate
from dragoman.models.layers.residual import AddAndNorm
from dragoman.shapes import Float


class FloatProduct:
    """A linear layer in the model's own precision.

    Parameters
    ----------
    weight : Float[Tensor, "outputs inputs"]
        The matrix.
    bias : Float[Tensor, "outputs"] | None
        What is added.
    """

    def __init__(
        self, weight: Float[Tensor, "outputs inputs"], bias: Float[Tensor, "outputs"] | None
    ) -> None:
        self._weight, self._bias = weight, bias

    def __call__(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply by the weight and add the bias."""
        return functional.linear(states, self._weight, self._bias)

    def rectified(
        self, states: Float[Tensor, "positions inputs"]
    ) -> Float[Tensor, "positions outputs"]:
        """Multiply, add the bias and apply ReLU.

        Returns
        -------
        Float[Tensor, "positions outputs"]
            In the same precision. On a GPU the library's product rectifies before it writes.
        """
        if self._bias is not None and states.is_cuda:
            return torch._addmm_activation(self._bias, states, self._weight.t())
        return self(states).relu_()


def join_layers(layers: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Concatenate linear layers that read the same input."""
    biases = [each.bias.detach() for each in layers if each.bias is not None]
    weights = [each.weight.detach() for each in layers]
    if len(weights) == 1:
        return weights[0], biases[0] if biases else None
    return torch.cat(weights), torch.cat(biases) if biases else None


class RebuiltAttention:
    """One attention with its projections fused.

    Parameters
    ----------
    attention : object
        The trained attention.
    is_self : bool
        Whether queries, keys and values come from the same vectors: then `joined` makes them all,
        else `query` the first and `memory` the others.
    """

    def __init__(self, attention: object, *, is_self: bool) -> None:
        assert isinstance(attention, MultiheadAttention)
        query, key, value = attention.query, attention.key, attention.value
        if is_self:
            self.joined = _join(query, key, value)
        else:
            self.query, self.memory = _join(query), _join(key, value)
        self.output = _join(attention.output)
        key_dim = key.out_features // attention.num_heads
        self.heads = Heads(
            attention.num_heads,
            key_dim,
            value.out_features // attention.num_heads,
            score_scale(key_dim, attention.scaled),
        )
        self.rotation, self.score_bias = attention.rotation, attention.score_bias

    def project_memory(self, hidden: Tensor) -> KeysAndValues:
        """Project encoder states to keys and values."""
        joined = self.memory(hidden.flatten(0, 1))
        keys, values = self._split(
            joined.view(*hidden.shape[:2], -1), (self.heads.key_dim, self.heads.value_dim)
        )
        return KeysAndValues(keys, values)

    def attend_to_self(self, states: Tensor, shape: Sequence[int], mask: Tensor | None) -> Tensor:
        """Compute encoder self-attention."""
        dims = (self.heads.key_dim, self.heads.key_dim, self.heads.value_dim)
        query, keys, values = self._split(self.joined(states).view(*shape[:2], -1), dims)
        if self.rotation is not None:
            query, keys = self.rotation(query, 0), self.rotation(keys, 0)
        more = 0 if mask is None else mask.size(-1) - keys.size(2)
        if more:
            query, keys, values = (pad(each, (0, 0, 0, more)) for each in (query, keys, values))
        return self._find(query, keys, values, mask, shape[1])

    def attend_to_past(self, states: Tensor, past: KeysAndValues, length: int) -> Tensor:
        """Append the newest tokens to the cache and compute decoder self-attention."""
        dims = (self.heads.key_dim, self.heads.key_dim, self.heads.value_dim)
        query, keys, values = self._split(self.joined(states.squeeze(1)).unsqueeze(1), dims)
        if self.rotation is not None:
            query, keys = self.rotation(query, length), self.rotation(keys, length)
        end = length + 1
        past.keys[:, :, length:end] = keys
        past.values[:, :, length:end] = values
        return self._find(query, past.keys[:, :, :end], past.values[:, :, :end], None)

    def attend_to_source(
        self, states: Tensor, source: KeysAndValues, mask: Tensor | None
    ) -> Tensor:
        """Compute cross-attention of a sentence's hypotheses."""
        query = self.query(states.squeeze(1)).view(
            len(source.keys), -1, self.heads.num_heads, self.heads.key_dim
        )
        return self._find(query.transpose(1, 2), source.keys, source.values, mask)

    def _find(
        self,
        query: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        num_queries: int | None = None,
    ) -> Tensor:
        """Compute attention for the first queries, or for all."""
        if self.score_bias is not None:
            bias = self.score_bias(query, keys.size(2))
            mask = bias if mask is None else bias + mask
        found = attend(query, keys, values, mask, scale=self.heads.scale)[:, :, :num_queries]
        return self.output(
            found.transpose(1, 2).reshape(-1, self.heads.num_heads * self.heads.value_dim)
        )

    def _split(self, joined: Tensor, dims: Sequence[int]) -> list[Tensor]:
        parts = joined.split([self.heads.num_heads * dim for dim in dims], dim=-1)
        return [
            part.unflatten(-1, (self.heads.num_heads, dim)).transpose(1, 2)
            for part, dim in zip(parts, dims, strict=True)
        ]


class RebuiltFeedForward:
    """One feed-forward layer.

    Parameters
    ----------
    layer : nn.Module
        The trained layer.
    """

    def __init__(self, layer: nn.Module) -> None:
        assert isinstance(layer, FeedForward)
        gates = [] if layer.gate is None else [layer.gate]
        self.inner = _join(layer.inner, *gates)
        self.outer = _join(layer.outer)
        self.kind, self._has_gate = layer.kind, layer.gate is not None

    def __call__(self, states: Tensor) -> Tensor:
        """Apply the layer."""
        if self.kind == "relu":
            return self.outer(self.inner.rectified(states))
        inner, gate = self.inner(states), None
        if self._has_gate:
            inner, gate = inner.chunk(2, dim=-1)
        return self.outer(activate(inner, gate, self.kind))


class RebuiltEncoderLayer(NamedTuple):
    """An encoder layer with the norms of the trained one."""

    own: RebuiltAttention
    feed: RebuiltFeedForward
    own_norm: AddAndNorm
    feed_norm: AddAndNorm

    def read(self, states: Tensor, shape: Sequence[int], mask: Tensor | None) -> Tensor:
        """Apply the layer."""
        states = self.own_norm(states, lambda x: self.own.attend_to_self(x, shape, mask))
        return self.feed_norm(states, self.feed)


class RebuiltDecoderLayer(NamedTuple):
    """A decoder layer with the norms of the trained one."""

    own: RebuiltAttention
    cross: RebuiltAttention
    feed: RebuiltFeedForward
    own_norm: AddAndNorm
    cross_norm: AddAndNorm
    feed_norm: AddAndNorm

    def step(
        self,
        states: Tensor,
        past: KeysAndValues,
        source: KeysAndValues,
        mask: Tensor | None,
        length: int,
    ) -> Tensor:
        """Apply the layer to the newest token of each hypothesis."""

        def own(x: Tensor) -> Tensor:
            return self.own.attend_to_past(x, past, length).unsqueeze(1)

        def cross(x: Tensor) -> Tensor:
            return self.cross.attend_to_source(x, source, mask).unsqueeze(1)

        def feed(x: Tensor) -> Tensor:
            return self.feed(x.squeeze(1)).unsqueeze(1)

        states = self.own_norm(states, own, length)
        states = self.cross_norm(states, cross, length)
        return self.feed_norm(states, feed, length)


def _join(*layers: nn.Linear) -> FloatProduct:
    """Concatenate linear layers that read the same input."""
    return FloatProduct(*join_layers(layers))
