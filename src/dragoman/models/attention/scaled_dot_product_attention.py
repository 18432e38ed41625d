"""Scaled dot-product attention (equation 1 of the paper), explicit and fused."""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from dragoman.kernels.training.dropout import dropout as drop
from dragoman.models.attention.mask import Mask
from dragoman.shapes import Float, Shaped


class Attended(NamedTuple):
    """Result of attention: the weighted average and the weights."""

    values: Float[Tensor, "batch heads queries value_dim"]
    weights: Float[Tensor, "batch heads queries keys"]


def attention_weights(
    query: Float[Tensor, "batch heads queries key_dim"],
    key: Float[Tensor, "batch heads keys key_dim"],
    mask: Mask,
    *,
    scaled: bool = True,
    bias: Float[Tensor, "#batch heads queries keys"] | None = None,
) -> Float[Tensor, "batch heads queries keys"]:
    r"""Compute the softmax of the scaled scores of each query with each key.

    Notes
    -----
    :math:`\mathrm{softmax}(QK^\top/\sqrt{d_k})`. The dot product of two vectors of d_k independent
    entries of variance 1 has variance d_k; dividing by its square root keeps the softmax away from
    its flat ends (one of the notes says “dividing by d_k”, which would flatten the attention).
    """
    scores = query @ key.transpose(-2, -1) * score_scale(query.size(-1), scaled)
    if bias is not None:
        scores = scores + bias
    may_attend = mask.may_attend(query.size(-2), key.size(-2), query.device)
    return scores.masked_fill(~may_attend, -math.inf).softmax(dim=-1)


def scaled_dot_product_attention(
    query: Float[Tensor, "batch heads queries key_dim"],
    key: Float[Tensor, "batch heads keys key_dim"],
    value: Float[Tensor, "batch heads keys value_dim"],
    mask: Mask,
) -> Attended:
    r"""Average the values, each weighted by how well its key matches the query.

    Notes
    -----
    Equation 1 of Vaswani et al. (2017): :math:`\mathrm{softmax}(QK^\top/\sqrt{d_k})V`, with time
    and memory in the product of the two lengths.
    """
    weights = attention_weights(query, key, mask)
    return Attended(weights @ value, weights)


def fused_attention(
    query: Float[Tensor, "batch heads queries key_dim"],
    key: Float[Tensor, "batch heads keys key_dim"],
    value: Float[Tensor, "batch heads keys value_dim"],
    mask: Mask,
    *,
    scaled: bool = True,
    bias: Float[Tensor, "#batch heads queries keys"] | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """Compute the same values as `scaled_dot_product_attention` without storing the weights."""
    scale = score_scale(query.size(-1), scaled)
    num_queries, num_keys = query.size(-2), key.size(-2)
    all_may = mask.key_lengths is None and (not mask.causal or num_queries in (1, num_keys))
    if all_may and bias is None:
        is_causal = mask.causal and num_queries > 1
        return attend(query, key, value, None, is_causal=is_causal, scale=scale, dropout=dropout)
    may_attend = mask.may_attend(num_queries, num_keys, query.device)
    if bias is not None:
        may_attend = bias.to(query.dtype).masked_fill(~may_attend, -math.inf)
    return attend(query, key, value, may_attend, scale=scale, dropout=dropout)


def attend(
    query: Float[Tensor, "batch heads queries key_dim"],
    key: Float[Tensor, "batch heads keys key_dim"],
    value: Float[Tensor, "batch heads keys value_dim"],
    mask: Shaped[Tensor, "#batch #heads #queries keys"] | None,
    *,
    scale: float,
    is_causal: bool = False,
    dropout: float = 0.0,
) -> Float[Tensor, "batch heads queries value_dim"]:
    """Call PyTorch's fused kernel, or the explicit form where that is faster on a CPU.

    Parameters
    ----------
    query : Float[Tensor, "batch heads queries key_dim"]
        What each position looks for.
    key : Float[Tensor, "batch heads keys key_dim"]
        What each position offers to be found by.
    value : Float[Tensor, "batch heads keys value_dim"]
        What each position gives when found.
    mask : Shaped[Tensor, "#batch #heads #queries keys"] | None
        Where queries may look, or what is added to the scores; each may look somewhere.
    scale : float
        What the scores are multiplied by.
    is_causal : bool
        Whether the queries, as many as keys, may look only back; without a mask.
    dropout : float
        Share of the weights that is dropped.

    Notes
    -----
    On a CPU the fused kernel's gradient in bfloat16 takes eight times as long as the products that
    it fuses (32 sentences of 32 words on a core: 6.4 against 0.8 ms), a third of training. Each
    thread of training draws from a generator of its own, which PyTorch's kernel does not know: see
    `dragoman.kernels.training.dropout`.
    """
    is_slow = query.dtype == torch.bfloat16 and torch.is_grad_enabled() and query.requires_grad
    if query.device.type != "cpu" or not (dropout or is_slow):
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=is_causal, scale=scale, dropout_p=dropout
        )
    scores = query @ key.transpose(-2, -1) * scale
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if mask is not None and mask.dtype == torch.bool:
        scores = scores.masked_fill(~mask, -math.inf)
    elif mask is not None:
        scores = scores + mask
    return drop(scores.softmax(dim=-1), dropout) @ value


def score_scale(key_dim: int, scaled: bool) -> float:
    """Return the factor of attention scores."""
    return 1 / math.sqrt(key_dim) if scaled else 1.0
