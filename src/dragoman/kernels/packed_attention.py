r"""Attention among packed sentences: many short ones in one launch, and no mask in memory.

For each query a stretch of keys is named that it may look at. Both sides are sorted by sentence, so
a block of neighbouring queries needs only the keys between the first of its first stretch and the
end of its last. The way back is that of FlashAttention (Dao et al., 2022): the weights are computed
again from the saved sums, :math:`dS = P\circ(dP-\mathrm{rowsum}(dO\circ O))`.
"""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from dragoman.data.packing import Spans
from dragoman.kernels import language
from dragoman.kernels.language import jit, next_power, tl


class Tuning(NamedTuple):
    """Rows that a program keeps, rows it looks at in one turn, and how Triton lays that out."""

    block: int
    inner: int
    num_warps: int
    num_stages: int


# The best of some sixteen each, on an H200 with sentences of about 28 words.
FORWARD = Tuning(64, 32, 4, 3)
QUERY_GRAD = Tuning(64, 32, 4, 3)
MEMORY_GRAD = Tuning(32, 32, 1, 2)


class Heads(NamedTuple):
    """How the columns of projected tokens are divided: heads side by side, keys before values."""

    num_heads: int
    key_dim: int
    value_dim: int


def packed_attention(
    query: Float[Tensor, "queries columns"],
    memory: Float[Tensor, "keys both"] | None,
    heads: Heads,
    visible: Spans,
    seen_by: Spans,
    scale: float,
) -> Float[Tensor, "queries values"]:
    """Let each query look at its stretch of keys, in every head.

    Parameters
    ----------
    query : Float[Tensor, "queries columns"]
        The queries; without a memory their own keys and values beside them.
    memory : Float[Tensor, "keys both"] | None
        Keys and values; None: the queries attend to themselves.
    heads : Heads
        How columns are divided.
    visible : Spans
        The keys that each query may look at; both ends never fall from one query to the next.
    seen_by : Spans
        The queries that may look at each key: the same relation, read the other way.
    scale : float
        What scores are multiplied by.

    Returns
    -------
    Float[Tensor, "queries values"]
        What each query found; zero if it may look at nothing.
    """
    if language.uses_kernels(query):
        return _PackedAttention.apply(query, memory, heads, visible, seen_by, scale)
    return plain_packed_attention(query, memory, heads, visible, scale)


def plain_packed_attention(
    query: Float[Tensor, "queries columns"],
    memory: Float[Tensor, "keys both"] | None,
    heads: Heads,
    visible: Spans,
    scale: float,
) -> Float[Tensor, "queries values"]:
    """Compute the same with the mask and the weights spelt out, for all sentences at once.

    Parameters
    ----------
    query : Float[Tensor, "queries columns"]
        The queries; without a memory their own keys and values beside them.
    memory : Float[Tensor, "keys both"] | None
        Keys and values; None: the queries attend to themselves.
    heads : Heads
        How columns are divided.
    visible : Spans
        The keys that each query may look at.
    scale : float
        What scores are multiplied by.

    Returns
    -------
    Float[Tensor, "queries values"]
        What each query found; zero if it may look at nothing.
    """
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
    return (weights.to(memory.dtype) @ split[2]).transpose(0, 1).flatten(1)


class _PackedAttention(torch.autograd.Function):
    """The kernels with their way back."""

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        query: Tensor,
        memory: Tensor | None,
        heads: Heads,
        visible: Spans,
        seen_by: Spans,
        scale: float,
    ) -> Tensor:
        """Compute what the queries find."""
        found = query.new_empty(len(query), heads.num_heads * heads.value_dim)
        log_sums = query.new_empty(heads.num_heads, len(query), dtype=torch.float32)
        key, value = _columns(query, memory, heads)
        grid = (-(-len(query) // FORWARD.block), heads.num_heads)
        _forward_kernel[grid](
            query, key, value, found, log_sums, visible.first, visible.end, len(query),
            scale * math.log2(math.e), query.stride(0), key.stride(0), found.stride(0),
            **_settings(heads, query, FORWARD),
        )  # fmt: skip
        kept = (query, found, log_sums, *visible, *seen_by)
        ctx.save_for_backward(*kept, *([] if memory is None else [memory]))
        ctx.heads, ctx.scale = heads, scale
        return found

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:  # noqa: ANN401
        """Compute the gradients of queries, keys and values."""
        query, found, log_sums, first, end, seen_first, seen_end, *rest = ctx.saved_tensors
        memory = rest[0] if rest else None
        heads, scale = ctx.heads, ctx.scale
        grad = grad.contiguous()
        query_grad = torch.empty_like(query)
        memory_grad = None if memory is None else torch.empty_like(memory)
        key, value = _columns(query, memory, heads)
        key_grad, value_grad = _columns(query_grad, memory_grad, heads)
        deltas = torch.empty_like(log_sums)
        strides = (query.stride(0), key.stride(0), found.stride(0))
        _query_grad_kernel[(-(-len(query) // QUERY_GRAD.block), heads.num_heads)](
            query, key, value, found, grad, query_grad, log_sums, deltas, first, end, len(query),
            scale, *strides, **_settings(heads, query, QUERY_GRAD),
        )  # fmt: skip
        _memory_grad_kernel[(-(-len(key) // MEMORY_GRAD.block), heads.num_heads)](
            query, key, value, grad, key_grad, value_grad, log_sums, deltas, first, end,
            seen_first, seen_end, len(query), len(key), scale, *strides,
            **_settings(heads, query, MEMORY_GRAD),
        )  # fmt: skip
        return query_grad, memory_grad, None, None, None, None


def _columns(query: Tensor, memory: Tensor | None, heads: Heads) -> tuple[Tensor, Tensor]:
    """Find the keys and the values among the columns."""
    width = heads.num_heads * heads.key_dim
    joined = query[:, width:] if memory is None else memory
    return joined[:, :width], joined[:, width:]


def _settings(heads: Heads, query: Tensor, tuning: Tuning) -> dict[str, Any]:
    """Say what a kernel is compiled for."""
    return {
        "KEY_DIM": heads.key_dim,
        "VALUE_DIM": heads.value_dim,
        "KEY_BLOCK": next_power(heads.key_dim),
        "VALUE_BLOCK": next_power(heads.value_dim),
        "BLOCK": tuning.block,
        "INNER": tuning.inner,
        "num_warps": tuning.num_warps,
        "num_stages": tuning.num_stages,
        "PRECISION": "ieee" if query.dtype == torch.float32 else "tf32",
    }


@jit
def _tile(start, rows, num_rows, stride, head, DIM: tl.constexpr, DIM_BLOCK: tl.constexpr):
    """Load one head's columns of some rows."""
    columns = tl.arange(0, DIM_BLOCK)
    mask = (rows < num_rows)[:, None] & (columns < DIM)[None, :]
    places = rows.to(tl.int64)[:, None] * stride + head * DIM + columns[None, :]
    return tl.load(start + places, mask=mask, other=0.0)


@jit
def _put(start, tile, rows, num_rows, stride, head, DIM: tl.constexpr, DIM_BLOCK: tl.constexpr):
    """Store one head's columns of some rows."""
    columns = tl.arange(0, DIM_BLOCK)
    mask = (rows < num_rows)[:, None] & (columns < DIM)[None, :]
    places = rows.to(tl.int64)[:, None] * stride + head * DIM + columns[None, :]
    tl.store(start + places, tile.to(start.dtype.element_ty), mask=mask)


@jit
def _forward_kernel(
    query, key, value, found, log_sums, first, end, num_queries, scale,
    query_stride, key_stride, found_stride,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """One block of queries in one head; scores are in units of log₂."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    firsts = tl.load(first + rows, mask=rows < num_queries, other=0)
    ends = tl.load(end + rows, mask=rows < num_queries, other=0)
    low = tl.load(first + tl.program_id(0) * BLOCK)
    high = tl.load(end + tl.minimum(tl.program_id(0) * BLOCK + BLOCK, num_queries) - 1)
    q = _tile(query, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)
    largest = tl.full([BLOCK], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    sums = tl.zeros([BLOCK, VALUE_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        keys = start + tl.arange(0, INNER)
        k = _tile(key, keys, high, key_stride, head, KEY_DIM, KEY_BLOCK)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        may = (keys[None, :] >= firsts[:, None]) & (keys[None, :] < ends[:, None])
        scores = tl.where(may, scores, float("-inf"))
        new_largest = tl.maximum(largest, tl.max(scores, 1))
        level = tl.where(new_largest == float("-inf"), 0.0, new_largest)
        weights = tl.exp2(scores - level[:, None])
        fade = tl.exp2(largest - level)
        total = total * fade + tl.sum(weights, 1)
        v = _tile(value, keys, high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
        sums = sums * fade[:, None] + tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        largest = new_largest
    is_blind = total == 0.0
    sums = sums / tl.where(is_blind, 1.0, total)[:, None]
    _put(found, sums, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    logs = tl.where(is_blind, float("inf"), largest + tl.log2(tl.where(is_blind, 1.0, total)))
    tl.store(log_sums + head * num_queries + rows, logs, mask=rows < num_queries)


@jit
def _query_grad_kernel(
    query, key, value, found, grad, query_grad, log_sums, deltas, first, end, num_queries, scale,
    query_stride, key_stride, found_stride,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute one block of queries' gradient, and the row sums that the other kernel needs."""
    head = tl.program_id(1)
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    is_row = rows < num_queries
    firsts = tl.load(first + rows, mask=is_row, other=0)
    ends = tl.load(end + rows, mask=is_row, other=0)
    low = tl.load(first + tl.program_id(0) * BLOCK)
    high = tl.load(end + tl.minimum(tl.program_id(0) * BLOCK + BLOCK, num_queries) - 1)
    q = _tile(query, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)
    out = _tile(found, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    out_grad = _tile(grad, rows, num_queries, found_stride, head, VALUE_DIM, VALUE_BLOCK)
    delta = tl.sum(out.to(tl.float32) * out_grad.to(tl.float32), 1)
    tl.store(deltas + head * num_queries + rows, delta, mask=is_row)
    logs = tl.load(log_sums + head * num_queries + rows, mask=is_row, other=float("inf"))
    sums = tl.zeros([BLOCK, KEY_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        keys = start + tl.arange(0, INNER)
        k = _tile(key, keys, high, key_stride, head, KEY_DIM, KEY_BLOCK)
        v = _tile(value, keys, high, key_stride, head, VALUE_DIM, VALUE_BLOCK)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * (scale * 1.4426950408889634)
        may = (keys[None, :] >= firsts[:, None]) & (keys[None, :] < ends[:, None])
        weights = tl.where(may, tl.exp2(scores - logs[:, None]), 0.0)
        weights_grad = tl.dot(out_grad, tl.trans(v), input_precision=PRECISION)
        scores_grad = (weights * (weights_grad - delta[:, None])).to(k.dtype)
        sums += tl.dot(scores_grad, k, input_precision=PRECISION)
    _put(query_grad, sums * scale, rows, num_queries, query_stride, head, KEY_DIM, KEY_BLOCK)


@jit
def _memory_grad_kernel(
    query, key, value, grad, key_grad, value_grad, log_sums, deltas, first, end,
    seen_first, seen_end, num_queries, num_keys, scale, query_stride, key_stride, found_stride,
    KEY_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    KEY_BLOCK: tl.constexpr, VALUE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of one block of keys and values; scores stand on their side here."""
    head = tl.program_id(1)
    keys = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    low = tl.load(seen_first + tl.program_id(0) * BLOCK)
    high = tl.load(seen_end + tl.minimum(tl.program_id(0) * BLOCK + BLOCK, num_keys) - 1)
    k = _tile(key, keys, num_keys, key_stride, head, KEY_DIM, KEY_BLOCK)
    v = _tile(value, keys, num_keys, key_stride, head, VALUE_DIM, VALUE_BLOCK)
    key_sums = tl.zeros([BLOCK, KEY_BLOCK], tl.float32)
    value_sums = tl.zeros([BLOCK, VALUE_BLOCK], tl.float32)
    for start in range(low, high, INNER):
        rows = start + tl.arange(0, INNER)
        is_row = rows < high
        q = _tile(query, rows, high, query_stride, head, KEY_DIM, KEY_BLOCK)
        out_grad = _tile(grad, rows, high, found_stride, head, VALUE_DIM, VALUE_BLOCK)
        firsts = tl.load(first + rows, mask=is_row, other=0)
        ends = tl.load(end + rows, mask=is_row, other=0)
        logs = tl.load(log_sums + head * num_queries + rows, mask=is_row, other=float("inf"))
        delta = tl.load(deltas + head * num_queries + rows, mask=is_row, other=0.0)
        scores = tl.dot(k, tl.trans(q), input_precision=PRECISION) * (scale * 1.4426950408889634)
        may = (keys[:, None] >= firsts[None, :]) & (keys[:, None] < ends[None, :])
        weights = tl.where(may, tl.exp2(scores - logs[None, :]), 0.0)
        value_sums += tl.dot(weights.to(out_grad.dtype), out_grad, input_precision=PRECISION)
        weights_grad = tl.dot(v, tl.trans(out_grad), input_precision=PRECISION)
        scores_grad = (weights * (weights_grad - delta[None, :])).to(q.dtype)
        key_sums += tl.dot(scores_grad, q, input_precision=PRECISION)
    _put(key_grad, key_sums * scale, keys, num_keys, key_stride, head, KEY_DIM, KEY_BLOCK)
    _put(value_grad, value_sums, keys, num_keys, key_stride, head, VALUE_DIM, VALUE_BLOCK)
