"""Trace a Transformer's attention on one sentence, and recompute it by the formulas.

Inputs and outputs of each module are recorded in a forward pass; then the same is
computed again by the formulas, token by token and as matrices, and compared.
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from dragoman.data.batches import Batch
from dragoman.models.attention.multihead_attention import MultiheadAttention
from dragoman.models.attention.observer import observed_attention
from dragoman.models.attention.scaled_dot_product_attention import score_scale
from dragoman.models.transformer import Transformer
from dragoman.shapes import Bool, Float

Kind = Literal["encoder", "decoder", "cross"]


class Errors(NamedTuple):
    """Largest absolute differences between the recomputed and the recorded values.

    Attributes
    ----------
    projections : float
        Of x W to the recorded queries, keys and values.
    weights : float
        Of the softmax of the scaled and masked scores to the recorded weights.
    row_sums : float
        Of the weights' sums to 1.
    sums : float
        Of the sums token by token to the product of matrices.
    heads : float
        Of that product to the recorded input of W^O.
    output : float
        Of the joined heads times W^O to the recorded output.
    fused : float
        Of that to the output without recording, when the fused kernel runs.
    """

    projections: float
    weights: float
    row_sums: float
    sums: float
    heads: float
    output: float
    fused: float


class Steps(NamedTuple):
    """The intermediate values of one token's attention in one head; None where masked.

    Attributes
    ----------
    products : list[float | None]
        q·k for each key.
    scores : list[float | None]
        The same divided by √d_k, plus what positions add.
    exponentials : list[float | None]
        Of the scores.
    weights : list[float]
        The exponentials divided by their sum; 0 where masked.
    shares : list[Float[Tensor, "value_dim"]]
        Each weight times its value.
    total : Float[Tensor, "value_dim"]
        Their sum: the A of this token.
    """

    products: list[float | None]
    scores: list[float | None]
    exponentials: list[float | None]
    weights: list[float]
    shares: list[Tensor]
    total: Tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class AttentionTrace:
    """The recorded attention of one module on one sentence.

    Parameters
    ----------
    kind : Literal["encoder", "decoder", "cross"]
        Self-attention of the encoder or of the decoder, or the decoder's over the source.
    layer : int
        Counted from 1.
    module : MultiheadAttention
        The module.
    query_tokens : Float[Tensor, "queries model_dim"]
        The vectors x from which queries are made.
    key_tokens : Float[Tensor, "keys model_dim"]
        Those from which keys and values are made.
    query, key, value : Float[Tensor, "heads tokens head_dim"]
        As they enter the scores: turned, where positions turn them.
    may_attend : Bool[Tensor, "queries keys"]
        Who may look where.
    weights : Float[Tensor, "heads queries keys"]
        As they were seen.
    joined : Float[Tensor, "queries all_heads_dim"]
        What was seen to enter W^O.
    output : Float[Tensor, "queries model_dim"]
        What the module said.
    fused : Float[Tensor, "queries model_dim"]
        Its output without recording.
    """

    kind: Kind
    layer: int
    module: MultiheadAttention
    query_tokens: Tensor
    key_tokens: Tensor
    query: Tensor
    key: Tensor
    value: Tensor
    may_attend: Bool[Tensor, "queries keys"]
    weights: Tensor
    joined: Tensor
    output: Tensor
    fused: Tensor

    @property
    def scale(self) -> float:
        """The scaling of scores: 1/√d_k."""
        return score_scale(self.query.size(-1), self.module.scaled)

    @property
    def products(self) -> Float[Tensor, "heads queries keys"]:
        """All dot products of queries and keys: Q Kᵀ."""
        return self.query @ self.key.transpose(1, 2)

    @property
    def scores(self) -> Float[Tensor, "heads queries keys"]:
        """The products scaled, with position biases, and −∞ where masked."""
        scores = self.products * self.scale
        if self.module.score_bias is not None:
            scores = scores + self.module.score_bias(self.query.unsqueeze(0), self.key.size(1))[0]
        return scores.masked_fill(~self.may_attend, -torch.inf)

    @property
    def contexts(self) -> Float[Tensor, "heads queries value_dim"]:
        """All A at once: softmax(Q Kᵀ/√d_k) V."""
        return self.scores.softmax(-1) @ self.value

    def heads_through_output(self) -> Float[Tensor, "heads queries model_dim"]:
        """Multiply each head by its own rows of W^O.

        Returns
        -------
        Float[Tensor, "heads queries model_dim"]
            What each head adds to the output; with the bias, if there is one, they sum to it.
        """
        matrix = self.module.output.weight.T.unflatten(0, (len(self.query), -1))
        return self.contexts @ matrix

    def compute_token(self, head_index: int, token_index: int) -> Steps:
        r"""Compute one token's attention by the formula for a single query.

        Notes
        -----
        :math:`A(q,K,V)=\sum_i\frac{\exp(q\cdot k^{<i>}/\sqrt{d_k})}
        {\sum_j\exp(q\cdot k^{<j>}/\sqrt{d_k})}v^{<i>}`.
        """
        query = self.query[head_index, token_index]
        steps = Steps([], [], [], [], [], torch.zeros_like(self.value[head_index, 0]))
        added = (self.scores - self.products * self.scale)[head_index, token_index]
        for place, key in enumerate(self.key[head_index]):
            is_seen = bool(self.may_attend[token_index, place])
            product = (query @ key).item()
            score = product * self.scale + added[place].item()
            steps.products.append(product if is_seen else None)
            steps.scores.append(score if is_seen else None)
            steps.exponentials.append(math.exp(score) if is_seen else None)
        total = sum(each for each in steps.exponentials if each is not None)
        for place, exponential in enumerate(steps.exponentials):
            weight = 0.0 if exponential is None else exponential / total
            steps.weights.append(weight)
            steps.shares.append(weight * self.value[head_index, place])
        return steps._replace(total=torch.stack(steps.shares).sum(0))

    def compare(self) -> Errors:
        """Compare all recomputed values with the recorded ones."""
        num_heads, num_queries, _ = self.query.shape
        module, contexts = self.module, self.contexts
        query, key, value = (
            _split(_multiply(vectors, projection), num_heads)
            for vectors, projection in (
                (self.query_tokens, module.query), (self.key_tokens, module.key),
                (self.key_tokens, module.value),
            )
        )  # fmt: skip
        one_by_one = torch.stack([
            torch.stack([self.compute_token(head, token).total for token in range(num_queries)])
            for head in range(num_heads)
        ])  # fmt: skip
        output = self.heads_through_output().sum(0)
        if module.output.bias is not None:
            output = output + module.output.bias
        return Errors(
            projections=_largest(_turn(query, module) - self.query, _turn(key, module) - self.key,
                                 value - self.value),
            weights=_largest(self.scores.softmax(-1) - self.weights),
            row_sums=_largest(self.weights.sum(-1) - 1),
            sums=_largest(one_by_one - contexts),
            heads=_largest(contexts.transpose(0, 1).flatten(1) - self.joined),
            output=_largest(output - self.output),
            fused=_largest(self.output - self.fused),
        )  # fmt: skip


@torch.no_grad()
def trace_attention(model: Transformer, batch: Batch) -> list[AttentionTrace]:
    """Record the attention of a model on one sentence pair.

    Returns
    -------
    list[AttentionTrace]
        The encoder's layers, then for each layer of the decoder its self-attention and its
        attention to the source.
    """
    places: list[tuple[Kind, int, Any]] = [
        ("encoder", index, layer.self_attention) for index, layer in enumerate(model.encoder)
    ]
    for index, layer in enumerate(model.decoder):
        places.append(("decoder", index, layer.self_attention))
        places.append(("cross", index, layer.cross_attention))
    modules = [
        part
        for _, _, module in places
        for part in (module, module.query, module.key, module.output)
    ]
    with recorded_calls(modules) as unobserved:
        model.forward(batch)
    with recorded_calls(modules) as calls, observed_attention(model) as maps:
        model.forward(batch)
    names = {module: name for name, module in model.named_modules()}
    worked = []
    for kind, index, module in places:
        (queries, memory, mask, *_), output = calls[module]
        query = _split(calls[module.query][1][0], module.num_heads)
        sizes = (queries.size(1), memory.keys.size(2))
        worked.append(
            AttentionTrace(
                kind=kind, layer=index + 1, module=module, query_tokens=queries[0],
                key_tokens=calls[module.key][0][0][0], query=_turn(query, module),
                key=memory.keys[0], value=memory.values[0],
                may_attend=mask.may_attend(*sizes, queries.device)[0, 0],
                weights=maps[names[module]][0][0], joined=calls[module.output][0][0][0],
                output=output[0], fused=unobserved[module][1][0],
            )
        )  # fmt: skip
    return worked


@contextmanager
def recorded_calls(modules: Iterable[nn.Module]) -> Iterator[dict[nn.Module, Any]]:
    """Record the arguments and the result of each module's last call."""
    calls: dict[nn.Module, Any] = {}

    def see(module: nn.Module, given: Any, said: Any) -> None:  # noqa: ANN401
        calls[module] = (given, said)

    hooks = [module.register_forward_hook(see) for module in modules]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


def _multiply(vectors: Tensor, projection: nn.Linear) -> Tensor:
    """Compute x W + b, spelt out."""
    product = vectors @ projection.weight.T
    return product if projection.bias is None else product + projection.bias


def _split(joined: Tensor, num_heads: int) -> Tensor:
    """Split the vectors of tokens into heads, which come first."""
    return joined.unflatten(-1, (num_heads, -1)).transpose(0, 1)


def _turn(vectors: Tensor, module: MultiheadAttention) -> Tensor:
    """Apply rotary positions to queries or keys, where the module uses them."""
    return vectors if module.rotation is None else module.rotation(vectors.unsqueeze(0), 0)[0]


def _largest(*differences: Tensor) -> float:
    return max(each.abs().max().item() for each in differences)
