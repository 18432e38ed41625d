"""Attention over packed sentences: many in one launch, and no mask in memory.

Each query attends to a range of keys. Short sentences, which come first, are computed several in a
tile (`attention_tiles`); long sentences and padding block by block (`attention_blocks`).
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dragoman.data.packed_mask import PackedMask
from dragoman.data.packing import Spans
from dragoman.kernels import language
from dragoman.kernels.language import draw_seed
from dragoman.kernels.training.attention_blocks import attend_in_blocks, blocks_backward
from dragoman.kernels.training.attention_tiles import (
    Attention,
    Heads,
    Tensors,
    attend_in_tiles,
    tiles_backward,
)
from dragoman.kernels.training.dropout import dropout as drop_entries
from dragoman.shapes import Float


def packed_attention(
    query: Float[Tensor, "queries columns"],
    memory: Float[Tensor, "keys both"] | None,
    heads: Heads,
    mask: PackedMask,
    scale: float,
    dropout: float = 0.0,
) -> Float[Tensor, "queries values"]:
    """Let each query attend to its range of keys, in every head.

    Notes
    -----
    The dropout mask is not stored but computed again in the backward pass, by a hash.
    """
    if language.uses_kernels(query):
        return _PackedAttention.apply(query, memory, heads, mask, scale, dropout)
    if language.uses_compiled(query, memory):
        return _CompiledAttention.apply(query, memory, heads, mask, scale, dropout)
    drop = partial(drop_entries, share=dropout)
    return plain_packed_attention(query, memory, heads, mask.visible, scale, drop)


def plain_packed_attention(
    query: Float[Tensor, "queries columns"],
    memory: Float[Tensor, "keys both"] | None,
    heads: Heads,
    visible: Spans,
    scale: float,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "queries values"]:
    """Compute the same with explicit masks and weights, for all sentences at once."""
    num_heads, width = heads.num_heads, heads.num_heads * heads.key_dim
    if memory is None:
        query, memory = query[:, :width], query[:, width:]
    split = [each.unflatten(1, (num_heads, -1)).transpose(0, 1) for each in
             (query, memory[:, :width], memory[:, width:])]  # fmt: skip
    places = torch.arange(len(memory), device=memory.device)
    may_attend = (places >= visible.first[:, None]) & (places < visible.end[:, None])
    scores = split[0] @ split[1].transpose(1, 2) * scale
    weights = scores.masked_fill(~may_attend, -math.inf).softmax(-1)
    weights = weights.masked_fill(~may_attend.any(1, keepdim=True), 0.0)
    if drop is not None:
        weights = drop(weights)
    return (weights.to(memory.dtype) @ split[2]).transpose(0, 1).flatten(1)


class _PackedAttention(torch.autograd.Function):
    """Autograd function of the Triton kernels."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        query: Tensor,
        memory: Tensor | None,
        heads: Heads,
        mask: PackedMask,
        scale: float,
        dropout: float,
    ) -> Tensor:
        """Compute attention."""
        found = query.new_empty(len(query), heads.num_heads * heads.value_dim)
        log_sums = query.new_empty(heads.num_heads, len(query), dtype=torch.float32)
        seed = draw_seed(query.device) if dropout else None
        work = _attention(query, memory, heads, mask, scale, dropout, seed)
        attend_in_tiles(work, found)
        attend_in_blocks(work, found, log_sums)
        ctx.save_for_backward(query, memory, found, log_sums, seed)
        ctx.heads, ctx.mask, ctx.scale, ctx.dropout = heads, mask, scale, dropout
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Compute the gradients of queries, keys and values."""
        query, memory, found, log_sums, seed = ctx.saved_tensors
        work = _attention(query, memory, ctx.heads, ctx.mask, ctx.scale, ctx.dropout, seed)
        query_grad = torch.empty_like(query)
        memory_grad = None if memory is None else torch.empty_like(memory)
        grads = _columns(query_grad, memory_grad, work.heads)
        grad = grad.contiguous()
        tiles_backward(work, found, grad, grads)
        blocks_backward(work, found, log_sums, grad, grads)
        return query_grad, memory_grad, None, None, None, None


class _CompiledAttention(torch.autograd.Function):
    """Autograd function of the functions compiled for a CPU."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        query: Tensor,
        memory: Tensor | None,
        heads: Heads,
        mask: PackedMask,
        scale: float,
        dropout: float,
    ) -> Tensor:
        """Compute what the queries find."""
        from dragoman.kernels.training.cpu.arrays import as_array
        from dragoman.kernels.training.cpu.packed_attention import attend

        seed = draw_seed(query.device) if dropout else None
        ctx.save_for_backward(query, memory, seed)
        ctx.settings = (heads, mask, scale, dropout)
        found = query.new_empty(len(query), heads.num_heads * heads.value_dim)
        attend(*_compiled_arguments(query, memory, seed, *ctx.settings), as_array(found))
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Compute the gradients of queries, keys and values."""
        from dragoman.kernels.training.cpu.arrays import as_array
        from dragoman.kernels.training.cpu.packed_attention import attend_backward

        query, memory, seed = ctx.saved_tensors
        query_grad = torch.empty_like(query, memory_format=torch.contiguous_format)
        memory_grad = None
        if memory is not None:
            memory_grad = torch.empty_like(memory, memory_format=torch.contiguous_format)
        attend_backward(
            *_compiled_arguments(query, memory, seed, *ctx.settings),
            as_array(grad.contiguous()),
            as_array(query_grad),
            as_array(query_grad if memory_grad is None else memory_grad),
        )
        return query_grad, memory_grad, None, None, None, None


def _compiled_arguments(
    query: Tensor,
    memory: Tensor | None,
    seed: Tensor | None,
    heads: Heads,
    mask: PackedMask,
    scale: float,
    dropout: float,
) -> tuple[Any, ...]:
    """Collect the arguments of the compiled functions."""
    from dragoman.kernels.training.cpu.arrays import as_array, make_drop

    width = heads.num_heads * heads.key_dim
    columns = (0, width, 2 * width) if memory is None else (0, 0, width)
    return (
        as_array(query.contiguous()),
        as_array((query if memory is None else memory).contiguous()),
        columns,
        as_array(mask.visible.first),
        as_array(mask.visible.end),
        tuple(heads),
        np.float32(scale),
        make_drop(dropout, 0 if seed is None else int(seed)),
    )


def _attention(
    query: Tensor,
    memory: Tensor | None,
    heads: Heads,
    mask: PackedMask,
    scale: float,
    dropout: float,
    seed: Tensor | None,
) -> Attention:
    return Attention(
        tensors=_columns(query, memory, heads),
        heads=heads,
        visible=mask.visible,
        seen_by=mask.seen_by,
        query_groups=mask.query_groups,
        key_groups=mask.key_groups,
        scale=scale,
        dropout=dropout,
        seed=seed,
        longest=mask.longest,
    )


def _columns(query: Tensor, memory: Tensor | None, heads: Heads) -> Tensors:
    """Return the first columns of queries, keys and values."""
    width = heads.num_heads * heads.key_dim
    joined = query[:, width:] if memory is None else memory
    return Tensors(query, joined[:, :width], joined[:, width:])
